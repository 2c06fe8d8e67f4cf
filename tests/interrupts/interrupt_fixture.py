"""An agent on a real database and real sockets, a server that plays a point's script, and a watcher of its events."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import hark
from hark.protocol.events import AnyEvent
from hark.protocol.receipts import Receipt
from hark.protocol.tool import CallContext, Tool, ToolOutput, ToolSpec
from tests.fakes.models.behaviours import Behaviour, Exchange, text
from tests.fakes.models.server import ModelServer
from tests.tools.context import is_living

E = TypeVar("E", bound=AnyEvent)
NEXT_REPLY = "next done"


class Deaf:
    """A tool that swallows every cancel until the test is over."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.freed = asyncio.Event()

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("deaf", "Deaf.")

    async def run(self, arguments: Any, context: CallContext) -> ToolOutput:
        self.started.set()
        while not self.freed.is_set():
            with suppress(asyncio.CancelledError):
                await self.freed.wait()
        return ToolOutput("late")


class Quick:
    """A tool that is done at once."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("quick", "Quick.")

    async def run(self, arguments: Any, context: CallContext) -> ToolOutput:
        return ToolOutput("quick result")


class World:
    """One test's agent, session and server. Once `is_cut`, the server answers every request with the next reply."""

    def __init__(self, home: Path, script: Sequence[Behaviour]) -> None:
        self.home = home
        self.deaf = Deaf()
        self.server = ModelServer([self._play] * 20)
        self.events: list[AnyEvent] = []
        self.says: list[asyncio.Task[Receipt]] = []
        self.said: list[str] = []
        self.is_cut = False
        self.playing = asyncio.Event()
        self._script = list(script)
        self._stack = AsyncExitStack()
        self._session: hark.SessionHandle | None = None
        self._changed = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    @property
    def session(self) -> hark.SessionHandle:
        assert self._session is not None
        return self._session

    async def _play(self, exchange: Exchange) -> None:
        behaviour = text([NEXT_REPLY]) if self.is_cut or not self._script else self._script.pop(0)
        self.playing.set()
        await behaviour(exchange)

    async def open(self, base_url: str = "") -> None:
        """Open the agent, and its session's events."""
        routes = [{"base_url": base_url or self.server.base_url, "model": "fake"}]
        tools: list[Tool] = [Quick(), self.deaf]
        opened = hark.open(home=self.home, workspace=self.home, routes=routes, tools=tools)
        agent = await self._stack.enter_async_context(opened)
        self._session = agent.session("demo")
        self._watching = asyncio.create_task(self._watch(self._session))

    async def close(self) -> None:
        """Close the agent."""
        await self._stack.aclose()
        if self._watching is not None:
            await self._watching

    async def _watch(self, session: hark.SessionHandle) -> None:
        async for event in session.events():
            self.events.append(event)
            self._changed.set()
            self._changed = asyncio.Event()

    def say(self, words: str, delivery: str = "interrupt") -> asyncio.Task[Receipt]:
        """Say something; the receipt may come whenever it does."""
        self.said.append(words)
        saying = asyncio.create_task(self.session.say(words, delivery))
        self.says.append(saying)
        return saying

    async def shows(self, kind: type[E], is_it: Callable[[E], bool] = lambda _: True) -> E:
        """Wait for an event."""
        while True:
            for event in self.events:
                if isinstance(event, kind) and is_it(event):
                    return event
            await self._changed.wait()


@asynccontextmanager
async def opened(home: Path, script: Sequence[Behaviour]) -> AsyncGenerator[World]:
    world = World(home, script)
    async with world.server:
        try:
            yield world
        finally:
            world.deaf.freed.set()
            await world.close()


def processes_in(directory: Path) -> list[str]:
    """The command lines of living processes that work in a directory: all that a test's shell calls started."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink() == directory and is_living(int(process.name)):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found
