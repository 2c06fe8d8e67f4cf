"""The page on this machine to which a browser comes back from a login."""

import asyncio
import contextlib
import socket
from typing import Any
from urllib.parse import parse_qs, urlsplit

HOST = "127.0.0.1"
REQUEST_BYTES = 16_384
REQUEST_SECONDS = 10.0
_PAGE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n\r\n"
    b"<!doctype html><title>Hark</title><p>You can close this page and go back to Hark.</p>"
)
_NOT_HERE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Redirects:
    """Listens on a loopback port for one answer: `code`, `state` and `iss` of the login."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._server: asyncio.Server | None = None
        self._answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def open(self) -> None:
        """Begin to listen.

        Raises:
            OSError: The port is taken.
        """
        self._answer = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(self._serve, HOST, self.port, limit=REQUEST_BYTES)

    async def answer(self, seconds: float) -> dict[str, Any]:
        """Return the answer, and listen no more. Cancelling ends the listening.

        Raises:
            TimeoutError: None came.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._answer
        finally:
            if self._server is not None:
                self._server.close()
                self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(REQUEST_SECONDS):
                request = (await reader.readline()).decode("latin-1").split(" ")
                query = parse_qs(urlsplit(request[1]).query) if len(request) > 1 else {}
                is_answer = "state" in query and ("code" in query or "error" in query)
                writer.write(_PAGE if is_answer else _NOT_HERE)
                await writer.drain()
                if is_answer and not self._answer.done():
                    found = {name: query.get(name, [None])[0] for name in ("code", "state", "iss")}
                    self._answer.set_result({**found, "code": found["code"] or ""})
        writer.close()


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return listener.getsockname()[1]
