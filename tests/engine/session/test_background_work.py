"""A session's background work: which stops hold its wake-ups, and which ends of work count."""

import asyncio

from hark.engine.session.decide import DecisionContext, on_stop
from hark.engine.session.state import SessionState
from hark.protocol.commands import Delivery, EndWork, Say, StartWork
from hark.protocol.messages import AssistantMessage, Call, CallResult, Effect, UserMessage
from hark.protocol.outcomes import Completed
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    Queued,
    Replied,
    TurnStarted,
    WakeUpsHeld,
    WorkEnded,
    WorkStarted,
)
from hark.protocol.store import SessionSummary
from hark.protocol.tool import CallContext, ToolOutput
from hark.providers.scripted import ScriptedProvider
from tests.engine.engine_fixture import FakeTool, GatedStore, call_chunks, make_services, run_session
from tests.waiting import until

TURN = "demo.t1"
START = TurnStarted(turn=TURN, messages=(UserMessage("go", "go"),), inbox=1)
REPLY = Replied(turn=TURN, step=1, message=AssistantMessage("", (Call("c1", "delegate", "{}"),)))
CONTINUES = CallEnded(turn=TURN, result=CallResult("c1", "delegate", "continues", Effect.CONTINUES))
LATER = Queued(message=UserMessage("q", "later"), delivery=Delivery.QUEUE, turn=TURN, inbox=2)


def state_after(*records: AnyRecord) -> SessionState:
    state = SessionState()
    for record in records:
        state.apply(record)
    return state


def is_held_by_stop(*records: AnyRecord) -> bool:
    return on_stop(state_after(*records), DecisionContext(1.0, "demo")) == [WakeUpsHeld(at=1.0)]


def test_a_stop_holds_wake_ups_when_work_may_still_start() -> None:
    assert is_held_by_stop(START, REPLY)
    assert is_held_by_stop(START, LATER)
    assert is_held_by_stop(WorkStarted(work="job", name="job"))
    assert not is_held_by_stop(START)
    assert not is_held_by_stop(START, REPLY, WakeUpsHeld())


def test_a_child_that_ends_before_the_record_of_its_call_is_not_running_afterwards() -> None:
    ended = WorkEnded(work="c1")
    assert state_after(START, REPLY, CONTINUES).work == {"c1": ""}
    assert state_after(START, REPLY, ended, CONTINUES).work == {}
    assert state_after(START, REPLY, CONTINUES, ended).work == {}


async def test_a_message_in_flight_when_the_user_stops_does_not_allow_wake_ups() -> None:
    store, provider = GatedStore(), ScriptedProvider([])
    async with run_session(make_services(provider, store)) as user:
        await user.proxy.change(StartWork("w1", "job", "job"))
        store.inbox.gate.shut()
        message = asyncio.create_task(user.say("go"))
        await store.inbox.gate.reached.wait()
        stop = asyncio.create_task(user.stop())
        await asyncio.sleep(0)
        store.inbox.gate.open()
        await asyncio.gather(message, stop)
        assert await user.proxy.change(EndWork("w2", "job", "job", "it ended")) is None
        await user.proxy.idle()
        assert user.proxy.state.turns == 1
        assert [report.text for report in user.proxy.state.reports] == ["it ended"]
    assert provider.requests == []


async def test_a_stop_after_an_interrupting_message_also_counts_for_the_calls_of_the_turn() -> None:
    """A tool that leaves its child running after a message must end it after a stop."""
    started, cancelled, stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()
    is_cut: list[bool] = []

    async def work(context: CallContext) -> ToolOutput:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            is_cut.append(context.is_cut_by_message)
            cancelled.set()
            await stopped.wait()
            is_cut.append(context.is_cut_by_message)
        return ToolOutput("done")

    provider = ScriptedProvider([call_chunks("work")])
    tool = FakeTool("work", work, grace_seconds=0.9)
    async with run_session(make_services(provider, tools=[tool])) as user:
        await user.say("go")
        await started.wait()
        message = asyncio.create_task(user.say("how is it going?"))
        await cancelled.wait()
        stop = asyncio.create_task(user.stop())
        await until(lambda: user.proxy.state.are_wake_ups_held)
        stopped.set()
        await asyncio.gather(message, stop)
    assert is_cut == [True, False]


async def stored_session(session: str, *records: AnyRecord) -> GatedStore:
    """Return a store with a session whose owner is dead."""
    store = GatedStore(owner="dead")
    lease = await store.leases.acquire(session)
    assert lease is not None
    await store.journal.append(lease, 0, records, SessionSummary(cursor=0))
    await store.leases.release(lease)
    return store


async def test_lost_work_of_a_child_session_starts_no_turn() -> None:
    store = await stored_session("demo.c-c1", WorkStarted(work="job", name="job"))
    provider = ScriptedProvider([])
    async with run_session(make_services(provider, store), "demo.c-c1") as child:
        await child.proxy.idle()
        assert "lost" in child.proxy.state.reports[0].text
    assert provider.requests == []


async def test_an_end_of_work_in_the_backlog_does_not_start_a_queued_message_before_an_interrupting_one() -> None:
    store = await stored_session("demo", TurnStarted(turn=TURN, messages=(UserMessage("go", "go"),)))
    await store.inbox.put("demo", Say("q", "later", Delivery.QUEUE))
    await store.inbox.put("demo", EndWork("w1", "job", "job", "it ended"))
    await store.inbox.put("demo", Say("i", "now"))
    provider = ScriptedProvider([["now"], ["queued"]])
    async with run_session(make_services(provider, store)) as user:
        assert await user.proxy.idle() == Completed("queued")
    names = [message.id for message in provider.requests[-1].messages if isinstance(message, UserMessage)]
    assert names == ["go", "i", "q"]
