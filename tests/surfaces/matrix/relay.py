"""A relay to the homeserver whose connections can be dropped."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Relay:
    """Forwards bytes to a port. `disconnect` drops all connections and accepts no more until `connect`."""

    def __init__(self, port: int) -> None:
        self._target_port = port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def connect(self) -> None:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def disconnect(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for writer in self._writers:
            writer.transport.abort()
        await self._server.wait_closed()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.set_name("relay")
        self._tasks.add(task)
        copies: list[asyncio.Task[None]] = []
        try:
            target_reader, target_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
            self._writers |= {writer, target_writer}
            for source, sink in ((reader, target_writer), (target_reader, writer)):
                copies.append(asyncio.create_task(_copy_stream(source, sink), name="relay"))
            await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
            target_writer.transport.abort()
        except asyncio.CancelledError:
            pass  # The stream's own task must not end as cancelled, or the loop would log an error.
        finally:
            for copy in copies:
                copy.cancel()
            writer.transport.abort()
            self._tasks.discard(task)


async def _copy_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
    except ConnectionError:
        return


@asynccontextmanager
async def running_relay(port: int) -> AsyncGenerator[Relay]:
    relay = Relay(port)
    await relay.connect()
    try:
        yield relay
    finally:
        await relay.disconnect()
