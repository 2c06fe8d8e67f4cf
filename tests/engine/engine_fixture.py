"""Runs the real engine on an in-memory store and a scripted provider, and records all events."""

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio

from hark.command_safety.analysis import ShellAnalyzer
from hark.engine.services import CurrentSettings, EngineServices, TurnSettings
from hark.engine.session.fanout import Subscription
from hark.engine.session.lease_renewal import LeaseRenewal
from hark.engine.session.proxy import SessionProxy
from hark.engine.session.router import HEARTBEAT_SECONDS, SessionRouter
from hark.engine.turn.quarantine import Quarantine
from hark.engine.turn.routes import Route, Routes
from hark.engine.turn.spending import DailySpending
from hark.protocol.commands import Command, Delivery, Interrupt, Say
from hark.protocol.events import AnyEvent, ReceiptChanged, ReplyDelta, TurnEnd
from hark.protocol.messages import CallResult, Message
from hark.protocol.outcomes import Outcome
from hark.protocol.provider import CallChunk, Provider
from hark.protocol.receipts import Receipt, ReceiptState, Settled
from hark.protocol.records import AnyRecord
from hark.protocol.rules import Rules
from hark.protocol.store import Lease, PutResult, SessionSummary, Store, StoreError
from hark.protocol.tool import CallContext, Tool, ToolOutput, ToolSpec
from hark.store.memory import MemoryInbox, MemoryJournal, MemoryStore, SharedMemory
from hark.tools.toolbox import Toolbox
from tests.engine.null_services import GrantsInMemory, NoSnapshots
from tests.waiting import until

CLOSE_SECONDS = 3.0
# Without heartbeats a lost wake-up stays lost. The periodic inbox check would hide it.
NO_HEARTBEAT_SECONDS = 1000.0
E = TypeVar("E", bound=AnyEvent)


class TestClock:
    """A test clock with real time and predictable ids."""

    __test__ = False

    def __init__(self) -> None:
        self._names = itertools.count(1)

    def now(self) -> float:
        return time.time()

    def new_id(self) -> str:
        return f"n{next(self._names)}"


class Gate:
    """Blocks callers of `wait_open` while it is shut. `reached` is set when a caller is blocked."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._open = asyncio.Event()
        self._open.set()

    def shut(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    async def wait_open(self) -> None:
        if not self._open.is_set():
            self.reached.set()
        await self._open.wait()


class GatedInbox(MemoryInbox):
    """An in-memory inbox. Tests can block its puts or make them fail."""

    def __init__(self, memory: SharedMemory) -> None:
        super().__init__(memory)
        self.gate = Gate()
        self.error: StoreError | None = None

    async def put(self, session: str, command: Command) -> PutResult:
        await self.gate.wait_open()
        if self.error is not None:
            raise self.error
        return await super().put(session, command)


class GatedJournal(MemoryJournal):
    """An in-memory journal. Tests can block its reads and appends, or make its appends fail."""

    def __init__(self, memory: SharedMemory) -> None:
        super().__init__(memory)
        self.gate = Gate()
        self.read_gate = Gate()
        self.blocked_kind: type[AnyRecord] | None = None
        self.error: StoreError | None = None

    def block_from(self, kind: type[AnyRecord]) -> None:
        """Block the next append that contains a record of this kind, and all later appends."""
        self.blocked_kind = kind

    async def append(self, lease: Lease, expected: int, records: Sequence[AnyRecord], summary: SessionSummary) -> None:
        if self.blocked_kind is not None and any(isinstance(record, self.blocked_kind) for record in records):
            self.blocked_kind = None
            self.gate.shut()
        await self.gate.wait_open()
        if self.error is not None:
            raise self.error
        await super().append(lease, expected, records, summary)

    async def read(self, session: str, after: int = 0) -> list[AnyRecord]:
        await self.read_gate.wait_open()
        return await super().read(session, after)


class GatedStore:
    """An in-memory store that tests can make slow or failing."""

    def __init__(self, memory: SharedMemory | None = None, owner: str = "test") -> None:
        memory = memory or SharedMemory()
        store = MemoryStore(memory, owner, TestClock())
        self.inbox = GatedInbox(memory)
        self.journal = GatedJournal(memory)
        self.search, self.leases, self.bus, self.close = store.search, store.leases, store.bus, store.close


class FakeTool:
    """A fake tool that calls an async function with the call's context."""

    def __init__(
        self,
        name: str,
        work: Callable[[CallContext], Awaitable[ToolOutput]],
        *,
        grace_seconds: float = 0.05,
        is_changing: bool = False,
    ) -> None:
        self._spec = ToolSpec(name, f"{name}.", is_changing=is_changing, grace_seconds=grace_seconds)
        self._work = work
        self.runs = 0

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        self.runs += 1
        return await self._work(context)


class HangingTool(FakeTool):
    """A fake tool that runs until it is cancelled."""

    def __init__(self, name: str = "wait", *, grace_seconds: float = 0.05) -> None:
        super().__init__(name, self._hang, grace_seconds=grace_seconds)
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


class UncancellableTool(FakeTool):
    """A fake tool that ignores cancellation and runs until `freed` is set."""

    def __init__(self, name: str = "deaf", *, grace_seconds: float = 0.05) -> None:
        super().__init__(name, self._ignore_cancels, grace_seconds=grace_seconds)
        self.started = asyncio.Event()
        self.freed = asyncio.Event()
        self.ended = asyncio.Event()

    async def _ignore_cancels(self, context: CallContext) -> ToolOutput:
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


def call_chunks(*names: str, arguments: str = "{}") -> list[CallChunk]:
    """Return the chunks of a reply that calls these tools, with the ids c1, c2, ..."""
    return [CallChunk(index, f"c{index + 1}", name, arguments) for index, name in enumerate(names)]


def make_services(
    provider: Provider, store: Store | None = None, tools: Iterable[Tool] = (), rules: Rules | None = None
) -> EngineServices:
    clock = TestClock()
    store = store or MemoryStore(SharedMemory(), "test", clock)
    return EngineServices(
        store=store,
        routes=Routes([Route("main", provider)], clock),
        current=CurrentSettings(TurnSettings(rules or Rules(), Toolbox(tools), lambda: "You are a test.")),
        clock=clock,
        quarantine=Quarantine(),
        spending=DailySpending(store.journal, clock),
        lease_renewal=LeaseRenewal(store.leases, clock),
        workspace=Path.cwd(),
        jitter=lambda: 0.0,
        analyzer=ShellAnalyzer(Path("/home/person")),
        grants=GrantsInMemory(),
        snapshots=NoSnapshots(),
    )


class EventRecorder:
    """Records all events of a session, as a user would see them."""

    def __init__(self, proxy: SessionProxy) -> None:
        self.events: list[AnyEvent] = []
        self._reader: Subscription = proxy.subscribe()
        self._changed = anyio.Event()
        self.closed = anyio.Event()

    async def record(self) -> None:
        async for event in self._reader:
            self.events.append(event)
            self._changed.set()
            self._changed = anyio.Event()
        self.closed.set()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until the recorded events satisfy a condition."""
        await until(condition, changed=lambda: self._changed.wait(), shows=lambda: self.events)

    @property
    def outcomes(self) -> list[Outcome]:
        return [event.outcome for event in self.events if isinstance(event, TurnEnd)]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ReplyDelta))

    def receipt_states(self, message: str) -> list[ReceiptState]:
        """Return the receipt states of a message, in order."""
        receipts = (event.receipt for event in self.events if isinstance(event, ReceiptChanged))
        return [receipt.state for receipt in receipts if receipt.id == message]

    def of_kind(self, kind: type[E]) -> list[E]:
        """Return the recorded events of this kind."""
        return [event for event in self.events if isinstance(event, kind)]

    async def wait_for(self, kind: type[E], number: int = 1) -> E:
        """Wait for the `number`-th event of this kind and return it."""
        await self.wait_until(lambda: len(self.of_kind(kind)) >= number)
        return self.of_kind(kind)[number - 1]

    async def wait_for_turns(self, turns: int) -> None:
        """Wait until this many turns have ended."""
        await self.wait_until(lambda: len(self.outcomes) >= turns)


class SessionUser:
    """A simulated user of one session. It sends messages and records the events."""

    def __init__(self, proxy: SessionProxy, recorder: EventRecorder) -> None:
        self.proxy = proxy
        self.recorder = recorder
        self._names = itertools.count(1)

    async def say(self, text: str, delivery: Delivery = Delivery.INTERRUPT, message_id: str = "") -> Receipt:
        return await self.proxy.say(Say(message_id or f"m{next(self._names)}", text, delivery))

    async def stop(self, turn: str = "", shown: int | None = None) -> Settled | None:
        return await self.proxy.interrupt(Interrupt(f"i{next(self._names)}", "user", turn, shown))

    @property
    def transcript(self) -> Sequence[Message]:
        return self.proxy.state.transcript.messages

    @property
    def call_results(self) -> dict[str, CallResult]:
        """The call results in the transcript, by the call's id."""
        return {message.call: message for message in self.transcript if isinstance(message, CallResult)}


@asynccontextmanager
async def run_session(
    services: EngineServices,
    session: str = "demo",
    *,
    adopts_work: bool = False,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
) -> AsyncGenerator[SessionUser]:
    """Run a session and yield its simulated user. Close the session when the context exits."""
    router = SessionRouter(services, adopts_work=adopts_work, heartbeat_seconds=heartbeat_seconds)
    async with anyio.create_task_group() as tasks:
        await tasks.start(router.run)
        proxy = router.proxy_for(session)
        recorder = EventRecorder(proxy)
        tasks.start_soon(recorder.record)
        try:
            yield SessionUser(proxy, recorder)
        finally:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await router.close()
                await services.quarantine.close()
            tasks.cancel_scope.cancel()
