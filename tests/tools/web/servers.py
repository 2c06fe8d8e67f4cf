"""Real web servers on loopback, for tests of the web tools."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

RequestHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WebServer:
    """A running web server: its URL, its port, and the requests that it received."""

    def __init__(self, port: int, requests: list[web.Request]) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.port = port
        self.requests = requests


@asynccontextmanager
async def run_server(answer: RequestHandler) -> AsyncGenerator[WebServer]:
    """Run a server that answers every request with `answer`."""
    requests: list[web.Request] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        requests.append(request)
        return await answer(request)

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield WebServer(runner.addresses[0][1], requests)
    finally:
        await runner.cleanup()


class RawServer:
    """A raw TCP server. It sends `reply` after each request's head, then waits until the client disconnects."""

    def __init__(self, reply: bytes) -> None:
        self.reply = reply
        self.requested = asyncio.Event()
        self.disconnected = asyncio.Event()
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            self.requested.set()
            writer.write(self.reply)
            await writer.drain()
            await reader.read()
        except ConnectionError:
            pass
        finally:
            self.disconnected.set()
            writer.close()


@asynccontextmanager
async def run_raw_server(reply: bytes) -> AsyncGenerator[RawServer]:
    raw = RawServer(reply)
    server = await asyncio.start_server(raw.handle, "127.0.0.1", 0)
    raw.port = server.sockets[0].getsockname()[1]
    async with server:
        yield raw
