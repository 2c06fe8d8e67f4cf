"""The HTTP server: uvicorn, with limits for slow or large requests. The app handles signals."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

REQUEST_SECONDS = 20.0
MAX_HEAD_BYTES = 32_768
KEEP_ALIVE_SECONDS = 30
GRACE_SECONDS = 1
MAX_CONNECTIONS = 20_000
BACKLOG = 2_048


class BoundedHttpProtocol(HttpToolsProtocol):
    """An HTTP protocol that closes a connection if its next request is too slow or a request head is too long.

    uvicorn alone would wait forever and buffer all input.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._request_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first request."""
        super().connection_made(transport)
        self._start_timer()

    def on_headers_complete(self) -> None:
        """Reset the byte count at the end of a request head."""
        self._head_bytes = 0
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Process input, and start or stop the timer."""
        self._head_bytes += len(data)
        super().data_received(data)
        if not self._is_idle:
            self._head_bytes = 0
            self._stop_timer()
        elif self._head_bytes > MAX_HEAD_BYTES:
            self.send_400_response("The request head is too long.")
        elif self._request_timer is None:
            self._start_timer()

    def send_400_response(self, msg: str) -> None:
        """Answer invalid HTTP with an error response in the usual format, and close the connection."""
        body = msgspec.json.encode({"error": {"code": "bad_http", "message": msg}})
        head = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n"
        self.transport.write(b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer when the client has disconnected."""
        self._stop_timer()
        super().connection_lost(exc)

    @property
    def _is_idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]

    def _start_timer(self) -> None:
        self._request_timer = self.loop.call_later(REQUEST_SECONDS, self._close_if_idle)

    def _stop_timer(self) -> None:
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def _close_if_idle(self) -> None:
        self._request_timer = None
        if self._is_idle:
            self.transport.close()


class HttpServer(uvicorn.Server):
    """A server that runs until `should_exit` is set. The caller handles signals."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Install no signal handlers."""
        yield


def make_server(app: ASGIApp) -> HttpServer:
    """Return a server for the app. It runs on sockets that are already bound."""
    return HttpServer(
        uvicorn.Config(
            app,
            http=BoundedHttpProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the address. Port 0 selects a free port.

    Raises:
        OSError: The address is in use or does not exist.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is explicit: otherwise asyncio does not set TCP_NODELAY, and small responses take 40 ms longer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
