"""A compaction can be interrupted at every pass of the event loop: no message is lost, and the history stays valid."""

import asyncio
import copy
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from hark.engine.services import EngineServices
from hark.engine.session.state import SessionState
from hark.engine.turn.compaction import INSTRUCTIONS
from hark.engine.turn.routes import Route, Routes
from hark.protocol.commands import Command, Compact, Delivery, EndWork, Say, StartWork
from hark.protocol.messages import CallResult, Note, UserMessage
from hark.protocol.outcomes import Completed, Interrupted, Usage
from hark.protocol.provider import CallChunk, Chunk, ContextTooLong, EndChunk, Request, TextChunk, UsageChunk
from hark.protocol.receipts import Settled
from hark.protocol.records import AnyRecord, CallEnded, Compacted, Queued, Steered, TurnEnded, TurnStarted, WorkEnded
from hark.protocol.store import Lease, PutResult, SessionSummary
from hark.protocol.tool import CallContext, ToolOutput
from hark.store.memory import MemoryInbox, MemoryJournal, MemoryStore, SharedMemory
from tests.engine.engine_fixture import FakeTool, SessionUser, TestClock, make_services, run_session
from tests.engine.turn.test_compaction import LONG, WINDOW, check_call_results, user_texts
from tests.simulation.loop import VirtualLoop

FULL, TOO_LONG, COMMAND = "full", "too long", "command"
TRIGGERS = [FULL, TOO_LONG, COMMAND]
STOP, REPORT = "stop", "report"
ACTIONS = [STOP, REPORT, Delivery.STEER, Delivery.QUEUE, Delivery.INTERRUPT]
REPLY_TOKENS = 100
WRITE_PASSES = 2
MIN_PASSES = 15


class PassLoop(VirtualLoop):
    """A loop in virtual time that calls `on_pass` before each pass."""

    def __init__(self) -> None:
        super().__init__(lambda _: None)
        self.on_pass: Callable[[], None] = lambda: None

    def select(self, timeout: float | None) -> list[object]:
        self.on_pass()
        return super().select(0 if self._ready else timeout)  # type: ignore[attr-defined]


async def wait_passes() -> None:
    for _ in range(WRITE_PASSES):
        await asyncio.sleep(0)


class SlowInbox(MemoryInbox):
    """An inbox whose puts take several passes, before and after they are durable."""

    async def put(self, session: str, command: Command) -> PutResult:
        await wait_passes()
        result = await super().put(session, command)
        await wait_passes()
        return result


class SlowJournal(MemoryJournal):
    """A journal whose appends take several passes, before and after they are durable."""

    async def append(self, lease: Lease, expected: int, records: Sequence[AnyRecord], summary: SessionSummary) -> None:
        await wait_passes()
        await super().append(lease, expected, records, summary)
        await wait_passes()


class SlowStore(MemoryStore):
    """A store in memory whose writes take several passes of the loop."""

    def __init__(self, memory: SharedMemory, owner: str) -> None:
        super().__init__(memory, owner, TestClock())
        self.inbox = SlowInbox(memory)
        self.journal = SlowJournal(memory)


class Model:
    """A model that reports its usage first and whose replies take several passes. It checks each request."""

    def __init__(self, trigger: str) -> None:
        self.requests: list[Request] = []
        self.tokens = 0
        self._trigger = trigger

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        check_call_results(request.messages)
        await asyncio.sleep(0)
        self.tokens += REPLY_TOKENS
        yield UsageChunk(Usage(REPLY_TOKENS, 0))
        for chunk in self._answer(request):
            await asyncio.sleep(0)
            yield chunk
        if self._is_refused(request):
            raise ContextTooLong("maximum context length is 8192 tokens")
        yield EndChunk()

    def _answer(self, request: Request) -> list[Chunk]:
        last, said = request.messages[-1], user_texts(request.messages)
        if is_summary_request(request):
            return [TextChunk("the "), TextChunk("notes")]
        if self._is_refused(request):
            return [TextChunk("half")]
        if isinstance(last, UserMessage) and last.text in ("one", "three"):
            return [CallChunk(0, f"c{len(self.requests)}", "look", "{}")]
        return [TextChunk(LONG if said[-1] in ("one", "two") else "done")]

    def _is_refused(self, request: Request) -> bool:
        is_long = any(isinstance(message, CallResult) and message.text == LONG for message in request.messages)
        is_whole = not isinstance(request.messages[0], Note) and not is_summary_request(request)
        return self._trigger == TOO_LONG and is_long and is_whole


def is_summary_request(request: Request) -> bool:
    last = request.messages[-1]
    return isinstance(last, Note) and last.text.startswith(INSTRUCTIONS)


@dataclass
class Run:
    """One run of a compaction. `act` is called `at` passes after the compaction's start."""

    trigger: str
    at: int = 0
    act: Callable[[SessionUser], object] | None = None
    memory: SharedMemory = field(default_factory=SharedMemory)
    snapshots: dict[tuple[int, int], SharedMemory] = field(default_factory=dict[tuple[int, int], SharedMemory])
    passes: int = 0
    settled: Settled | None = None
    actions: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    def __post_init__(self) -> None:
        self.model = Model(self.trigger)
        self._is_last_call = False
        self._user: SessionUser | None = None
        self.tool = FakeTool("look", self._look)

    @property
    def records(self) -> list[AnyRecord]:
        return self.memory.sessions["demo"].records

    def services(self, owner: str) -> EngineServices:
        services = make_services(self.model, SlowStore(self.memory, owner), [self.tool])
        window = WINDOW if self.trigger == FULL else None
        route = Route("main", self.model, context_tokens=window, input_price=1.0, output_price=1.0)
        return replace(services, routes=Routes([route], services.clock))

    async def play(self, action: str | None) -> None:
        async with run_session(self.services("first")) as user:
            self._user = user
            for text in ("one", "two"):
                await send(user, text)
                await user.proxy.idle()
            await asyncio.sleep(0.5)
            before = len(asyncio.all_tasks())
            self._prepare(action)
            if self.trigger == COMMAND:
                self._begin()
                assert await user.proxy.change(Compact("compact")) is None
            else:
                self._is_last_call = True
                await send(user, "three")
            await user.proxy.idle()
            loop_of_test().on_pass = lambda: None if self.actions else self._count()
            if action is None:
                loop_of_test().on_pass = lambda: None
            else:
                while not self.actions:  # noqa: ASYNC110 the loop's hook starts it
                    await asyncio.sleep(0.01)
                await asyncio.gather(*self.actions)
            await self.finish(user, before)

    async def reopen(self) -> None:
        """Open the session after a crash, let it finish, and send the next message."""
        async with run_session(self.services("second"), adopts_work=True) as user:
            await user.proxy.idle()
            await asyncio.sleep(0.5)
            await self.finish(user, len(asyncio.all_tasks()))

    async def finish(self, user: SessionUser, tasks: int) -> None:
        self._is_last_call = False
        await user.proxy.idle()
        await send(user, "next", Delivery.QUEUE)
        assert await user.proxy.idle() == Completed("done")
        await asyncio.sleep(0.5)
        assert len(asyncio.all_tasks()) == tasks, "no task is left"
        assert user.proxy.state.queue == []
        self.check_history(user)

    def check_history(self, user: SessionUser) -> None:
        """Check that each accepted message was consumed once, and that the history is valid and durable."""
        entries = self.memory.sessions["demo"].entries
        sent = {entry.command.id for entry in entries if isinstance(entry.command, Say)}
        turns = [record for record in self.records if isinstance(record, TurnStarted | Steered)]
        ended = {record.report.id for record in self.records if isinstance(record, WorkEnded) and record.report}
        consumed = Counter(message.id for record in turns for message in record.messages)
        assert consumed == Counter(sent | ended)
        state = SessionState()
        for record in self.records:
            state.apply(record)
        assert state.transcript.messages == user.transcript
        check_call_results(user.transcript)
        texts = user_texts(self.model.requests[-1].messages)
        said = [message.text for record in turns for message in record.messages]
        assert len(texts) >= 3
        assert texts == said[-len(texts) :]
        summaries = [record for record in self.records if isinstance(record, Compacted)]
        assert all(record.summary == "the notes" for record in summaries)
        is_full = any(isinstance(record, CallEnded) and record.result.text == LONG for record in self.records)
        assert len(summaries) == 1 or (not summaries and not is_full)

    def _prepare(self, action: str | None) -> None:
        async def act() -> None:
            assert self._user is not None
            if action == STOP:
                self.settled = await self._user.stop()
            elif action == REPORT:
                await self._user.proxy.change(StartWork("w1", "job", "job"))
                await self._user.proxy.change(EndWork("w2", "job", "job", "extra"))
            elif action is not None:
                await send(self._user, "extra", Delivery(action))

        self.act = (lambda _: self.actions.append(asyncio.get_running_loop().create_task(act()))) if action else None

    async def _look(self, context: CallContext) -> ToolOutput:
        if not self._is_last_call:
            return ToolOutput("seen")
        self._begin()
        return ToolOutput(LONG)

    def _begin(self) -> None:
        loop_of_test().on_pass = self._count

    def _count(self) -> None:
        """Count a pass, store the durable contents for a crash, and start the action at its pass."""
        stored = self.memory.sessions["demo"]
        self.snapshots.setdefault((len(stored.entries), len(stored.records)), copy_memory(self.memory))
        if self.passes == self.at and self.act is not None and self._user is not None:
            asyncio.get_running_loop().call_soon(self.act, self._user)
        self.passes += 1


def loop_of_test() -> PassLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, PassLoop)
    return loop


def copy_memory(memory: SharedMemory) -> SharedMemory:
    """Return the durable contents, which a crash leaves. The owner's lease is gone."""
    copied = SharedMemory()
    for name, stored in memory.sessions.items():
        one = copied.sessions[name] = copy.copy(stored)
        one.entries, one.seq_by_id, one.records = list(one.entries), dict(one.seq_by_id), list(one.records)
    return copied


async def send(user: SessionUser, text: str, delivery: Delivery = Delivery.INTERRUPT) -> None:
    receipt = await user.say(text, delivery, text)
    assert receipt.id == text


def run_on_pass_loop(run: Run, action: str | None) -> None:
    with asyncio.Runner(loop_factory=PassLoop) as runner:
        runner.run(run.play(action))


def count_passes(trigger: str) -> int:
    """Return how many passes the loop makes from the start of an undisturbed compaction to the turn's end."""
    run = Run(trigger)
    run_on_pass_loop(run, None)
    assert run.passes > MIN_PASSES
    return run.passes


def outcome_of(run: Run, turn: str) -> object:
    return next(record.outcome for record in run.records if isinstance(record, TurnEnded) and record.turn == turn)


def turn_of_extra(run: Run) -> TurnStarted | Steered:
    turns = (record for record in run.records if isinstance(record, TurnStarted | Steered))
    return next(record for record in turns if any(message.id == "extra" for message in record.messages))


def check_stop(run: Run) -> None:
    if run.settled is None:
        assert outcome_of(run, "demo.t3") == Completed(
            "done" if run.trigger != COMMAND else "Summarised 5 older messages in 9 characters."
        ) or (run.trigger == COMMAND and run.at < MIN_PASSES)
    else:
        assert run.settled.turn == "demo.t3"
        assert run.settled.outcome == outcome_of(run, "demo.t3")


def check_message(run: Run, delivery: Delivery) -> None:
    queued = next((one for one in run.records if isinstance(one, Queued) and one.message.id == "extra"), None)
    consumed = turn_of_extra(run)
    if queued is None or not queued.turn:
        return  # no turn was running any more
    assert queued.turn == "demo.t3"
    outcome = outcome_of(run, "demo.t3")
    places = [index for index, one in enumerate(run.records) if one is queued or isinstance(one, Compacted)]
    is_before_summary = run.records[places[0]] is queued
    if delivery is Delivery.INTERRUPT:
        assert consumed.turn == "demo.t4"
        assert isinstance(outcome, Interrupted | Completed)
        return
    assert isinstance(outcome, Completed)
    if delivery is Delivery.QUEUE or run.trigger == COMMAND:
        assert isinstance(consumed, TurnStarted)
        assert consumed.turn == "demo.t4"
    elif is_before_summary:
        assert isinstance(consumed, Steered), "the turn reads the steer after the summary"
        assert consumed.turn == "demo.t3"


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("trigger", TRIGGERS)
def test_an_interruption_at_any_pass_of_a_compaction_loses_nothing(trigger: str, action: str) -> None:
    seen: set[str] = set()
    for at in range(count_passes(trigger) + 1):
        run = Run(trigger, at)
        run_on_pass_loop(run, action)
        ends = [record for record in run.records if isinstance(record, TurnEnded)]
        assert sum(end.usage.input_tokens for end in ends) == run.model.tokens, "each reply is paid for"
        seen.add(type(outcome_of(run, "demo.t3")).__name__)
        if action == STOP:
            check_stop(run)
        elif action == REPORT:
            assert isinstance(outcome_of(run, "demo.t3"), Completed), "a report never interrupts a turn"
        else:
            check_message(run, Delivery(action))
        if trigger == COMMAND:
            notes = [one.text for one in run.model.requests[-1].messages if isinstance(one, Note)]
            assert not any("This turn was" in text for text in notes), "the model never saw that turn"
    assert "Completed" in seen
    assert ("Interrupted" in seen) == (action in (STOP, Delivery.INTERRUPT))


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_a_crash_at_any_pass_of_a_compaction_loses_nothing(trigger: str) -> None:
    undisturbed = Run(trigger)
    run_on_pass_loop(undisturbed, None)
    assert len(undisturbed.snapshots) >= 3
    outcomes: list[object] = []
    for memory in undisturbed.snapshots.values():
        run = Run(trigger, memory=memory)
        with asyncio.Runner(loop_factory=PassLoop) as runner:
            runner.run(run.reopen())
        state = SessionState()
        for record in run.records:
            state.apply(record)
        outcomes.append(outcome_of(run, "demo.t3"))
        assert trigger != COMMAND or not state.resumable_turns, "a compaction is not offered for continuation"
    assert Interrupted("crash") in outcomes
