"""Real web servers on loopback, for tests of what reads the web."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WebServer:
    """Where a server listens, and what it was asked."""

    def __init__(self, port: int, requests: list[web.Request]) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.port = port
        self.requests = requests


@asynccontextmanager
async def serving(answer: Answer) -> AsyncGenerator[WebServer]:
    """A server that answers every request like this."""
    requests: list[web.Request] = []

    async def take(request: web.Request) -> web.StreamResponse:
        requests.append(request)
        return await answer(request)

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield WebServer(runner.addresses[0][1], requests)
    finally:
        await runner.cleanup()


class RawServer:
    """Speaks bytes: sends `reply` behind each request's head, then waits until the other side has left."""

    def __init__(self, reply: bytes) -> None:
        self.reply = reply
        self.asked = asyncio.Event()
        self.left = asyncio.Event()
        self.port = 0

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            self.asked.set()
            writer.write(self.reply)
            await writer.drain()
            await reader.read()
        except ConnectionError:
            pass
        finally:
            self.left.set()
            writer.close()


@asynccontextmanager
async def raw_serving(reply: bytes) -> AsyncGenerator[RawServer]:
    raw = RawServer(reply)
    server = await asyncio.start_server(raw.take, "127.0.0.1", 0)
    raw.port = server.sockets[0].getsockname()[1]
    async with server:
        yield raw
