"""A way to the homeserver that can be cut."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Relay:
    """Passes bytes on to a port. `cut` drops all connections and takes no more, until `mend`."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for writer in self._writers:
            writer.transport.abort()
        await self._server.wait_closed()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.set_name("relay")
        self._tasks.add(task)
        ways: list[asyncio.Task[None]] = []
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
            self._writers |= {writer, far_writer}
            for source, sink in ((reader, far_writer), (far_reader, writer)):
                ways.append(asyncio.create_task(_copy(source, sink), name="relay"))
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            far_writer.transport.abort()
        except asyncio.CancelledError:
            pass  # the stream's own task must not end as cancelled: the loop would complain
        finally:
            for way in ways:
                way.cancel()
            writer.transport.abort()
            self._tasks.discard(task)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        return


@asynccontextmanager
async def relay(port: int) -> AsyncGenerator[Relay]:
    one = Relay(port)
    await one.mend()
    try:
        yield one
    finally:
        await one.cut()
