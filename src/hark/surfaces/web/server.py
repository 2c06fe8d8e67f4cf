"""The HTTP server: uvicorn, with bounds on what a client may hold, and signals left to the app."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 20.0
HEAD_BYTES = 32_768
KEEP_ALIVE_SECONDS = 30
GRACE_SECONDS = 1
MOST_CONNECTIONS = 20_000
BACKLOG = 2_048


class PatientProtocol(HttpToolsProtocol):
    """Closes a connection whose next request does not come whole in time, or has a head that is too long.

    uvicorn alone would wait for ever, and keep all that comes.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._waiting: asyncio.TimerHandle | None = None
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def on_headers_complete(self) -> None:
        """A head is whole."""
        self._head_bytes = 0
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Take more of a request."""
        self._head_bytes += len(data)
        super().data_received(data)
        if not self._is_between:
            self._head_bytes = 0
            self._be_patient()
        elif self._head_bytes > HEAD_BYTES:
            self.send_400_response("The head of that request is too long.")
        elif self._waiting is None:
            self._wait()

    def send_400_response(self, msg: str) -> None:
        """Tell that this is no HTTP, in the same shape as every other error, and close."""
        body = msgspec.json.encode({"error": {"code": "bad_http", "message": msg}})
        head = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n"
        self.transport.write(b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._be_patient()
        super().connection_lost(exc)

    @property
    def _is_between(self) -> bool:
        """True when no request is being answered."""
        return self.cycle is None or self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _be_patient(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if self._is_between:
            self.transport.close()


class HttpServer(uvicorn.Server):
    """Serves until `should_exit`; whoever runs it hears the signals."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave them alone."""
        yield


def make_server(app: ASGIApp) -> HttpServer:
    """Return a server for the app, to be run on sockets that are bound already."""
    return HttpServer(
        uvicorn.Config(
            app,
            http=PatientProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to the address, port 0 for any that is free.

    Raises:
        OSError: It can't be: another program has it, or there is no such address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named, for asyncio else does not know it as TCP and leaves small answers waiting for 40 ms.
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
