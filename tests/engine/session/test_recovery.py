"""After a crash: the open turn is closed, nothing runs again, what waited runs, and the person is told."""

from collections.abc import Sequence

from hark.engine.session.announce import CRASH_NOTICE
from hark.protocol.commands import Delivery, Interrupt, Say
from hark.protocol.events import Notice
from hark.protocol.messages import AssistantMessage, Call, Effect, Note, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.records import AnyRecord, CallStarted, Held, Progress, Queued, Replied, TurnStarted
from hark.protocol.store import Summary
from hark.providers.scripted import ScriptedProvider
from tests.engine.engine_fixture import GatedStore, make_bench, quick_tool, running

TURN = "demo.t1"
START = TurnStarted(turn=TURN, messages=(UserMessage("m1", "go"),))
LATER = Queued(message=UserMessage("q1", "later"), delivery=Delivery.QUEUE, turn=TURN)


async def crashed(*records: AnyRecord) -> GatedStore:
    """A store as a process left it that died behind these records."""
    store = GatedStore(owner="dead")
    lease = await store.leases.acquire("demo")
    assert lease is not None
    await store.journal.append(lease, 0, records, Summary(is_open=True))
    await store.leases.release(lease)
    return store


def texts(messages: Sequence[object]) -> list[str]:
    return [message.text for message in messages if isinstance(message, UserMessage)]


async def test_an_open_turn_is_closed_as_crashed_and_the_person_is_told() -> None:
    store = await crashed(START, Progress(turn=TURN, step=1, text="some words", is_first=True))
    provider = ScriptedProvider([["on"]])
    async with running(make_bench(provider, store)) as person:
        notice = await person.screen.shows(Notice)
        await person.screen.ended(1)
        assert provider.requests == []
        await person.say("go on", name="m2")
        assert await person.door.idle() == Completed("on")
    assert (notice.code, notice.text) == ("crash", CRASH_NOTICE)
    assert person.screen.outcomes[0] == Interrupted("crash")
    messages = provider.requests[0].messages
    assert texts(messages) == ["go", "go on"]
    assert AssistantMessage("some words", is_partial=True) in messages
    assert any(isinstance(message, Note) and "crash" in message.text for message in messages)


async def test_a_call_that_had_started_is_unknown_one_that_had_not_is_not_started_and_neither_runs_again() -> None:
    calls = (Call("c1", "look"), Call("c2", "look"))
    reply = Replied(turn=TURN, step=1, message=AssistantMessage("", calls))
    store, tool = await crashed(START, reply, CallStarted(turn=TURN, call="c1")), quick_tool()
    async with running(make_bench(ScriptedProvider([]), store, [tool]), sweeps=True) as person:
        await person.door.idle()
        effects = {call: result.effect for call, result in person.results.items()}
    assert effects == {"c1": Effect.UNKNOWN, "c2": Effect.NOT_STARTED}
    assert tool.runs == 0


async def test_what_waited_runs_after_a_crash() -> None:
    provider = ScriptedProvider([["late"]])
    async with running(make_bench(provider, await crashed(START, LATER)), sweeps=True) as person:
        assert await person.door.idle() == Completed("late")
    assert texts(provider.requests[0].messages) == ["go", "later"]


async def test_what_was_held_stays_held_after_a_crash() -> None:
    provider = ScriptedProvider([])
    async with running(make_bench(provider, await crashed(START, LATER, Held())), sweeps=True) as person:
        assert await person.door.idle() == Interrupted("crash")
        assert [item.state for item in await person.door.queue()] == ["held"]
    assert provider.requests == []


async def test_a_message_that_was_accepted_and_never_decided_runs_once() -> None:
    store = await crashed(START)
    await store.inbox.put("demo", Say("m2", "accepted", Delivery.INTERRUPT))
    provider = ScriptedProvider([["yes"]])
    async with running(make_bench(provider, store), sweeps=True) as person:
        assert await person.door.idle() == Completed("yes")
        assert (await person.say("accepted", name="m2")).state == "duplicate"
    assert texts(provider.requests[0].messages) == ["go", "accepted"]
    assert len(provider.requests) == 1


async def test_a_stop_for_the_crashed_turn_does_not_reach_the_next_one() -> None:
    store = await crashed(START, LATER)
    await store.inbox.put("demo", Interrupt("i1", "user", TURN))
    async with running(make_bench(ScriptedProvider([["late"]]), store), sweeps=True) as person:
        assert await person.door.idle() == Completed("late")


async def test_a_second_crash_while_the_first_is_being_closed_closes_it_once() -> None:
    store = await crashed(START)
    for _ in range(2):
        async with running(make_bench(ScriptedProvider([]), store), sweeps=True) as person:
            await person.door.idle()
    records = await store.journal.read("demo")
    assert [type(record).__name__ for record in records] == ["TurnStarted", "TurnEnded"]
