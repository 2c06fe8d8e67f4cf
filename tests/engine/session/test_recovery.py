"""After a crash the open turn is closed, nothing runs again, queued messages run, and the user is notified."""

from collections.abc import Sequence

from hark.engine.session.announcements import CRASH_NOTICE
from hark.protocol.commands import Delivery, Interrupt, Say
from hark.protocol.events import Notice
from hark.protocol.messages import AssistantMessage, Call, Effect, Note, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.records import AnyRecord, CallStarted, Queued, QueueHeld, Replied, ReplyTextSaved, TurnStarted
from hark.protocol.store import SessionSummary
from hark.providers.scripted import ScriptedProvider
from tests.engine.engine_fixture import GatedStore, make_services, quick_tool, run_session

TURN = "demo.t1"
START = TurnStarted(turn=TURN, messages=(UserMessage("m1", "go"),))
LATER = Queued(message=UserMessage("q1", "later"), delivery=Delivery.QUEUE, turn=TURN)


async def store_after_crash(*records: AnyRecord) -> GatedStore:
    """Return the store of a process that died after writing these records."""
    store = GatedStore(owner="dead")
    lease = await store.leases.acquire("demo")
    assert lease is not None
    await store.journal.append(lease, 0, records, SessionSummary(is_open=True))
    await store.leases.release(lease)
    return store


def user_texts(messages: Sequence[object]) -> list[str]:
    return [message.text for message in messages if isinstance(message, UserMessage)]


async def test_an_open_turn_is_closed_as_crashed_and_the_user_is_notified() -> None:
    store = await store_after_crash(START, ReplyTextSaved(turn=TURN, step=1, text="some words", is_first=True))
    provider = ScriptedProvider([["on"]])
    async with run_session(make_services(provider, store)) as user:
        notice = await user.recorder.wait_for(Notice)
        await user.recorder.wait_for_turns(1)
        assert provider.requests == []
        await user.say("go on", message_id="m2")
        assert await user.proxy.idle() == Completed("on")
    assert (notice.code, notice.text) == ("crash", CRASH_NOTICE)
    assert user.recorder.outcomes[0] == Interrupted("crash")
    messages = provider.requests[0].messages
    assert user_texts(messages) == ["go", "go on"]
    assert AssistantMessage("some words", is_partial=True) in messages
    assert any(isinstance(message, Note) and "crash" in message.text for message in messages)


async def test_recovery_marks_started_calls_as_unknown_and_others_as_not_started_and_reruns_none() -> None:
    calls = (Call("c1", "look"), Call("c2", "look"))
    reply = Replied(turn=TURN, step=1, message=AssistantMessage("", calls))
    store, tool = await store_after_crash(START, reply, CallStarted(turn=TURN, call="c1")), quick_tool()
    async with run_session(make_services(ScriptedProvider([]), store, [tool]), adopts_work=True) as user:
        await user.proxy.idle()
        effects = {call: result.effect for call, result in user.call_results.items()}
    assert effects == {"c1": Effect.UNKNOWN, "c2": Effect.NOT_STARTED}
    assert tool.runs == 0


async def test_queued_messages_run_after_a_crash() -> None:
    provider = ScriptedProvider([["late"]])
    async with run_session(make_services(provider, await store_after_crash(START, LATER)), adopts_work=True) as user:
        assert await user.proxy.idle() == Completed("late")
    assert user_texts(provider.requests[0].messages) == ["go", "later"]


async def test_a_held_queue_stays_held_after_a_crash() -> None:
    provider = ScriptedProvider([])
    async with run_session(
        make_services(provider, await store_after_crash(START, LATER, QueueHeld())), adopts_work=True
    ) as user:
        assert await user.proxy.idle() == Interrupted("crash")
        assert [item.state for item in await user.proxy.queue()] == ["held"]
    assert provider.requests == []


async def test_a_message_accepted_but_not_processed_before_the_crash_runs_once() -> None:
    store = await store_after_crash(START)
    await store.inbox.put("demo", Say("m2", "accepted", Delivery.INTERRUPT))
    provider = ScriptedProvider([["yes"]])
    async with run_session(make_services(provider, store), adopts_work=True) as user:
        assert await user.proxy.idle() == Completed("yes")
        assert (await user.say("accepted", message_id="m2")).state == "duplicate"
    assert user_texts(provider.requests[0].messages) == ["go", "accepted"]
    assert len(provider.requests) == 1


async def test_a_stop_for_the_crashed_turn_does_not_affect_the_next_turn() -> None:
    store = await store_after_crash(START, LATER)
    await store.inbox.put("demo", Interrupt("i1", "user", TURN))
    async with run_session(make_services(ScriptedProvider([["late"]]), store), adopts_work=True) as user:
        assert await user.proxy.idle() == Completed("late")


async def test_a_crashed_turn_is_closed_once_even_if_the_session_is_reopened_twice() -> None:
    store = await store_after_crash(START)
    for _ in range(2):
        async with run_session(make_services(ScriptedProvider([]), store), adopts_work=True) as user:
            await user.proxy.idle()
    records = await store.journal.read("demo")
    assert [type(record).__name__ for record in records] == ["TurnStarted", "TurnEnded"]
