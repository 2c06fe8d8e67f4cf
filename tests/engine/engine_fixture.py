"""The real engine on a store in memory and a scripted provider, with a screen that waits for things."""

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio

from hark.command_safety.analysis import ShellAnalyzer
from hark.engine.services import Current, EngineServices, Terms
from hark.engine.session.fanout import Subscription
from hark.engine.session.lease_renewal import LeaseRenewal
from hark.engine.session.proxy import SessionProxy
from hark.engine.session.router import HEARTBEAT_SECONDS, Router
from hark.engine.turn.quarantine import Quarantine
from hark.engine.turn.routes import Route, Routes
from hark.engine.turn.spending import Spending
from hark.protocol.commands import Command, Delivery, Interrupt, Say
from hark.protocol.events import AnyEvent, ReceiptChanged, ReplyDelta, TurnEnd
from hark.protocol.messages import CallResult, Message
from hark.protocol.outcomes import Outcome
from hark.protocol.provider import CallChunk, Provider
from hark.protocol.receipts import Receipt, ReceiptState, Settled
from hark.protocol.records import AnyRecord
from hark.protocol.rules import Rules
from hark.protocol.store import Accepted, Lease, Store, StoreError, Summary
from hark.protocol.tool import CallContext, Tool, ToolOutput, ToolSpec
from hark.store.memory import MemoryInbox, MemoryJournal, MemoryStore, SharedMemory
from hark.tools.toolbox import Toolbox
from tests.engine.null_services import GrantsInMemory, NoSnapshots
from tests.waiting import until

CLOSE_SECONDS = 3.0
# A wake that got lost stays lost: by itself a process looks every few seconds, which would hide it.
NO_HEARTBEAT = 1000.0
E = TypeVar("E", bound=AnyEvent)


class TestClock:
    """Real time, countable names."""

    __test__ = False

    def __init__(self) -> None:
        self._names = itertools.count(1)

    def now(self) -> float:
        return time.time()

    def new_id(self) -> str:
        return f"n{next(self._names)}"


class Gate:
    """Lets all through until it is shut; `reached` tells that somebody waits at it."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._open = asyncio.Event()
        self._open.set()

    def shut(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    async def passed(self) -> None:
        if not self._open.is_set():
            self.reached.set()
        await self._open.wait()


class GatedInbox(MemoryInbox):
    """An inbox whose puts can be held up, or fail."""

    def __init__(self, memory: SharedMemory) -> None:
        super().__init__(memory)
        self.gate = Gate()
        self.error: StoreError | None = None

    async def put(self, session: str, command: Command) -> Accepted:
        await self.gate.passed()
        if self.error is not None:
            raise self.error
        return await super().put(session, command)


class GatedJournal(MemoryJournal):
    """A journal whose reads and appends can be held up, or fail."""

    def __init__(self, memory: SharedMemory) -> None:
        super().__init__(memory)
        self.gate = Gate()
        self.read_gate = Gate()
        self.held_kind: type[AnyRecord] | None = None
        self.error: StoreError | None = None

    def hold(self, kind: type[AnyRecord]) -> None:
        """Shut the gate for the next append that has a record of this kind, and for all behind it."""
        self.held_kind = kind

    async def append(self, lease: Lease, expected: int, records: Sequence[AnyRecord], summary: Summary) -> None:
        if self.held_kind is not None and any(isinstance(record, self.held_kind) for record in records):
            self.held_kind = None
            self.gate.shut()
        await self.gate.passed()
        if self.error is not None:
            raise self.error
        await super().append(lease, expected, records, summary)

    async def read(self, session: str, after: int = 0) -> list[AnyRecord]:
        await self.read_gate.passed()
        return await super().read(session, after)


class GatedStore:
    """A store in memory that can be as slow as a disk, exactly when a test wants it."""

    def __init__(self, memory: SharedMemory | None = None, owner: str = "test") -> None:
        memory = memory or SharedMemory()
        store = MemoryStore(memory, owner, TestClock())
        self.inbox = GatedInbox(memory)
        self.journal = GatedJournal(memory)
        self.search, self.leases, self.bus, self.close = store.search, store.leases, store.bus, store.close


class FakeTool:
    """A tool that is one async function of its context."""

    def __init__(
        self,
        name: str,
        work: Callable[[CallContext], Awaitable[ToolOutput]],
        *,
        grace: float = 0.05,
        changes: bool = False,
    ) -> None:
        self._spec = ToolSpec(name, f"{name}.", is_changing=changes, grace_seconds=grace)
        self._work = work
        self.runs = 0

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        self.runs += 1
        return await self._work(context)


class HangingTool(FakeTool):
    """A tool that runs until it is cancelled."""

    def __init__(self, name: str = "wait", *, grace: float = 0.05) -> None:
        super().__init__(name, self._hang, grace=grace)
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def _hang(self, context: CallContext) -> ToolOutput:
        self.started.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        raise AssertionError


class DeafTool(FakeTool):
    """A tool that swallows every cancel, and ends when it is `freed`."""

    def __init__(self, name: str = "deaf", *, grace: float = 0.05) -> None:
        super().__init__(name, self._resist, grace=grace)
        self.started = asyncio.Event()
        self.freed = asyncio.Event()
        self.ended = asyncio.Event()

    async def _resist(self, context: CallContext) -> ToolOutput:
        self.started.set()
        context.output("half")
        while not self.freed.is_set():
            try:
                await self.freed.wait()
            except asyncio.CancelledError:
                continue
        context.output("never")
        self.ended.set()
        return ToolOutput("late")


def quick_tool(name: str = "look", text: str = "seen") -> FakeTool:
    async def work(context: CallContext) -> ToolOutput:
        return ToolOutput(text)

    return FakeTool(name, work)


def asks_for(*names: str, arguments: str = "{}") -> list[CallChunk]:
    """The chunks of a reply that calls these tools, as c1, c2, ..."""
    return [CallChunk(index, f"c{index + 1}", name, arguments) for index, name in enumerate(names)]


def make_bench(
    provider: Provider, store: Store | None = None, tools: Iterable[Tool] = (), rules: Rules | None = None
) -> EngineServices:
    clock = TestClock()
    store = store or MemoryStore(SharedMemory(), "test", clock)
    return EngineServices(
        store=store,
        routes=Routes([Route("main", provider)], clock),
        current=Current(Terms(rules or Rules(), Toolbox(tools), lambda: "You are a test.")),
        clock=clock,
        quarantine=Quarantine(),
        spending=Spending(store.journal, clock),
        tenure=LeaseRenewal(store.leases, clock),
        workspace=Path.cwd(),
        jitter=lambda: 0.0,
        analyzer=ShellAnalyzer(Path("/home/person")),
        grants=GrantsInMemory(),
        snapshots=NoSnapshots(),
    )


class Screen:
    """What a person sees of a session: all events, kept."""

    def __init__(self, door: SessionProxy) -> None:
        self.events: list[AnyEvent] = []
        self._reader: Subscription = door.subscribe()
        self._changed = anyio.Event()
        self.closed = anyio.Event()

    async def watch(self) -> None:
        async for event in self._reader:
            self.events.append(event)
            self._changed.set()
            self._changed = anyio.Event()
        self.closed.set()

    async def until(self, is_true: Callable[[], bool]) -> None:
        """Wait for the screen to show something."""
        await until(is_true, changed=lambda: self._changed.wait(), shows=lambda: self.events)

    @property
    def outcomes(self) -> list[Outcome]:
        return [event.outcome for event in self.events if isinstance(event, TurnEnd)]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ReplyDelta))

    def states(self, message: str) -> list[ReceiptState]:
        """The states that a message went through."""
        receipts = (event.receipt for event in self.events if isinstance(event, ReceiptChanged))
        return [receipt.state for receipt in receipts if receipt.id == message]

    def all(self, kind: type[E]) -> list[E]:
        """The events of a kind so far."""
        return [event for event in self.events if isinstance(event, kind)]

    async def shows(self, kind: type[E], number: int = 1) -> E:
        """Wait for the event of a kind, the first or a later one."""
        await self.until(lambda: len(self.all(kind)) >= number)
        return self.all(kind)[number - 1]

    async def ended(self, turns: int) -> None:
        """Wait until so many turns are over."""
        await self.until(lambda: len(self.outcomes) >= turns)


class Person:
    """Somebody in front of one session."""

    def __init__(self, door: SessionProxy, screen: Screen) -> None:
        self.door = door
        self.screen = screen
        self._names = itertools.count(1)

    async def say(self, text: str, delivery: Delivery = Delivery.INTERRUPT, name: str = "") -> Receipt:
        return await self.door.say(Say(name or f"m{next(self._names)}", text, delivery))

    async def stop(self, turn: str = "", shown: int | None = None) -> Settled | None:
        return await self.door.interrupt(Interrupt(f"i{next(self._names)}", "user", turn, shown))

    @property
    def transcript(self) -> Sequence[Message]:
        return self.door.state.transcript.messages

    @property
    def results(self) -> dict[str, CallResult]:
        """The results in the transcript, by the call's id."""
        return {message.call: message for message in self.transcript if isinstance(message, CallResult)}


@asynccontextmanager
async def running(
    bench: EngineServices, session: str = "demo", *, sweeps: bool = False, heartbeat_seconds: float = HEARTBEAT_SECONDS
) -> AsyncGenerator[Person]:
    """A person in front of a running session; settled and closed at the end."""
    router = Router(bench, sweeps=sweeps, heartbeat_seconds=heartbeat_seconds)
    async with anyio.create_task_group() as tasks:
        await tasks.start(router.run)
        door = router.door(session)
        screen = Screen(door)
        tasks.start_soon(screen.watch)
        try:
            yield Person(door, screen)
        finally:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await router.close()
                await bench.quarantine.close()
            tasks.cancel_scope.cancel()
