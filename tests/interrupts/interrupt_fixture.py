"""A real agent, database and sockets, a fake server that plays an interrupt point's script, and an event recorder."""

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
from tests.tools.fake_context import is_alive

E = TypeVar("E", bound=AnyEvent)
NEXT_REPLY = "next done"


class UncancellableTool:
    """A tool that ignores every cancellation until the test ends."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.released = asyncio.Event()

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("deaf", "Deaf.")

    async def run(self, arguments: Any, context: CallContext) -> ToolOutput:
        self.started.set()
        while not self.released.is_set():
            with suppress(asyncio.CancelledError):
                await self.released.wait()
        return ToolOutput("late")


class QuickTool:
    """A tool that returns immediately."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("quick", "Quick.")

    async def run(self, arguments: Any, context: CallContext) -> ToolOutput:
        return ToolOutput("quick result")


class InterruptFixture:
    """One test's agent, session and server. Once `is_interrupted` is set, every request gets `NEXT_REPLY`."""

    def __init__(self, home: Path, script: Sequence[Behaviour]) -> None:
        self.home = home
        self.uncancellable = UncancellableTool()
        self.server = ModelServer([self._play] * 20)
        self.events: list[AnyEvent] = []
        self.receipt_tasks: list[asyncio.Task[Receipt]] = []
        self.sent_texts: list[str] = []
        self.is_interrupted = False
        self.request_received = asyncio.Event()
        self._script = list(script)
        self._stack = AsyncExitStack()
        self._session: hark.SessionHandle | None = None
        self._changed = asyncio.Event()
        self._recording: asyncio.Task[None] | None = None

    @property
    def session(self) -> hark.SessionHandle:
        assert self._session is not None
        return self._session

    async def _play(self, exchange: Exchange) -> None:
        behaviour = text([NEXT_REPLY]) if self.is_interrupted or not self._script else self._script.pop(0)
        self.request_received.set()
        await behaviour(exchange)

    async def open(self, base_url: str = "") -> None:
        """Open the agent and subscribe to its session's events."""
        routes = [{"base_url": base_url or self.server.base_url, "model": "fake"}]
        tools: list[Tool] = [QuickTool(), self.uncancellable]
        opened = hark.open(home=self.home, workspace=self.home, routes=routes, tools=tools)
        agent = await self._stack.enter_async_context(opened)
        self._session = agent.session("demo")
        self._recording = asyncio.create_task(self._record_events(self._session))

    async def close(self) -> None:
        """Close the agent."""
        await self._stack.aclose()
        if self._recording is not None:
            await self._recording

    async def _record_events(self, session: hark.SessionHandle) -> None:
        async for event in session.events():
            self.events.append(event)
            self._changed.set()
            self._changed = asyncio.Event()

    def send(self, text: str, delivery: str = "interrupt") -> asyncio.Task[Receipt]:
        """Send a message without waiting for its receipt."""
        self.sent_texts.append(text)
        sending = asyncio.create_task(self.session.say(text, delivery))
        self.receipt_tasks.append(sending)
        return sending

    async def wait_for_event(self, kind: type[E], matches: Callable[[E], bool] = lambda _: True) -> E:
        """Wait for the first event of this kind that matches."""
        while True:
            for event in self.events:
                if isinstance(event, kind) and matches(event):
                    return event
            await self._changed.wait()


@asynccontextmanager
async def open_fixture(home: Path, script: Sequence[Behaviour]) -> AsyncGenerator[InterruptFixture]:
    fixture = InterruptFixture(home, script)
    async with fixture.server:
        try:
            yield fixture
        finally:
            fixture.uncancellable.released.set()
            await fixture.close()


def processes_in(directory: Path) -> list[str]:
    """Return the command lines of live processes whose working directory is this directory."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink() == directory and is_alive(int(process.name)):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found
