"""Sessions: messages, deliveries and stops, as people meet them."""

import asyncio

import pytest

from hark.protocol.commands import Delivery, Edit, Move, Say, Withdraw
from hark.protocol.messages import Attachment, Note, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import Request, TextChunk
from hark.protocol.receipts import ReceiptState
from hark.protocol.records import TurnEnded
from hark.protocol.rules import AfterStop, Rules
from hark.protocol.tool import CallContext, ToolOutput
from hark.providers.scripted import Hang, ScriptedProvider
from tests.engine.engine_fixture import FakeTool, GatedStore, HangingTool, asks_for, make_bench, running
from tests.waiting import at_most


def said(request: Request) -> list[str]:
    """What people said, as the model sees it."""
    return [message.text for message in request.messages if isinstance(message, UserMessage)]


async def test_a_message_starts_a_turn_and_the_reply_is_its_outcome() -> None:
    provider = ScriptedProvider([[TextChunk("hello "), TextChunk("you")]])
    async with running(make_bench(provider)) as person:
        receipt = await person.say("hi")
        outcome = await person.door.idle()
    assert receipt.state == "started"
    assert receipt.turn == "demo.t1"
    assert outcome == Completed("hello you")
    assert person.screen.text == "hello you"


async def test_a_message_that_interrupts_runs_as_the_next_turn() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], [TextChunk("done")]])
    async with running(make_bench(provider)) as person:
        await person.say("long task")
        await hang.reached.wait()
        receipt = await person.say("no, this instead", Delivery.INTERRUPT)
        await person.screen.until(lambda: len(person.screen.outcomes) == 2)
    assert receipt.state == "interrupting"
    assert person.screen.outcomes == [Interrupted("new message"), Completed("done")]
    assert person.screen.states("m2") == ["interrupting", "started"]


async def test_a_stop_between_the_decision_for_a_turn_and_its_durable_start_stops_that_turn() -> None:
    store, hang = GatedStore(), Hang()
    provider = ScriptedProvider([[hang], ["never"]])
    async with running(make_bench(provider, store)) as person:
        await person.say("first")
        await hang.reached.wait()
        store.journal.hold(TurnEnded)
        saying = asyncio.create_task(person.say("second"))
        await store.journal.gate.reached.wait()  # the end of the first and the start of the second
        stopping = asyncio.create_task(person.stop())
        await asyncio.sleep(0)
        store.journal.gate.open()
        settled = await stopping
        assert (await saying).state in ("interrupting", "started")
        await person.door.idle()
    assert settled is not None
    assert settled.outcome == Interrupted("user")
    assert person.screen.outcomes == [Interrupted("new message"), Interrupted("user")]
    assert len(provider.requests) == 1


async def test_a_close_between_the_decision_for_a_turn_and_its_durable_start_ends_that_turn() -> None:
    store, hangs = GatedStore(), [Hang(), Hang()]
    provider = ScriptedProvider([[hangs[0]], [hangs[1]]])
    async with running(make_bench(provider, store)) as person:
        await person.say("first")
        await hangs[0].reached.wait()
        store.journal.hold(TurnEnded)
        saying = asyncio.create_task(person.say("second"))
        await store.journal.gate.reached.wait()
        person.door.close()
        store.journal.gate.open()
        await saying
        async with asyncio.timeout(at_most(1)):
            await person.screen.closed.wait()
    assert len(provider.requests) == 1


async def test_failure_5_six_messages_during_a_busy_turn_all_run_once_and_in_order() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], *[[f"r{number}"] for number in range(6)]])
    async with running(make_bench(provider, rules=Rules(AfterStop.RUN))) as person:
        await person.say("go")
        await hang.reached.wait()
        receipts = [await person.say(f"q{number}", Delivery.QUEUE) for number in range(6)]
        await person.stop()
        assert await person.door.idle() == Completed("r5")
    assert [receipt.position for receipt in receipts] == [1, 2, 3, 4, 5, 6]
    assert said(provider.requests[-1]) == ["go", *[f"q{number}" for number in range(6)]]
    assert len(provider.requests) == 7


async def test_six_interrupting_messages_in_a_burst_start_one_turn_together() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["all"]])
    async with running(make_bench(provider)) as person:
        await person.say("go")
        await hang.reached.wait()
        receipts = await asyncio.gather(*(person.say(f"i{number}") for number in range(6)))
        assert await person.door.idle() == Completed("all")
    assert {receipt.state for receipt in receipts} <= {ReceiptState.INTERRUPTING, ReceiptState.STARTED}
    assert said(provider.requests[1]) == ["go", *[f"i{number}" for number in range(6)]]


async def test_failure_6_a_steer_and_then_a_queued_message_both_reach_the_model() -> None:
    tool = HangingTool()
    provider = ScriptedProvider([asks_for("wait"), ["steered"], ["queued"]])
    async with running(make_bench(provider, tools=[tool])) as person:
        await person.say("go")
        await tool.started.wait()
        steer = await person.say("also this", Delivery.STEER, "s")
        queued = await person.say("then that", Delivery.QUEUE, "q")
        assert (steer.state, queued.state) == ("steering", "queued")
        await person.say("now", Delivery.INTERRUPT, "i")
        await person.door.idle()
    assert said(provider.requests[1]) == ["go", "also this", "now"]
    assert said(provider.requests[2]) == ["go", "also this", "now", "then that"]


async def test_a_steer_that_its_turn_did_not_take_starts_the_next_turn() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["next"]])
    async with running(make_bench(provider, rules=Rules(AfterStop.RUN))) as person:
        await person.say("go")
        await hang.reached.wait()
        assert (await person.say("more", Delivery.STEER, "s")).state == "steering"
        await person.stop()
        assert await person.door.idle() == Completed("next")
    assert person.screen.states("s")[-1] == "started"
    assert said(provider.requests[1]) == ["go", "more"]


async def test_a_waiting_tool_hears_of_a_steer() -> None:
    started = asyncio.Event()

    async def work(context: CallContext) -> ToolOutput:
        started.set()
        await context.steered()
        return ToolOutput("ended early")

    provider = ScriptedProvider([asks_for("wait"), ["good"]])
    async with running(make_bench(provider, tools=[FakeTool("wait", work)])) as person:
        await person.say("go")
        await started.wait()
        await person.say("hurry", Delivery.STEER, "s")
        assert await person.door.idle() == Completed("good")
    assert person.screen.states("s") == ["steering", "steered"]
    assert said(provider.requests[1]) == ["go", "hurry"]


async def test_failure_3_a_redirect_with_an_image_keeps_its_image() -> None:
    hang, image = Hang(), Attachment("image/png", data="AAAA")
    provider = ScriptedProvider([[hang], ["nice"]])
    async with running(make_bench(provider)) as person:
        await person.say("go")
        await hang.reached.wait()
        await person.door.say(Say("p", "look at this", Delivery.INTERRUPT, attachments=(image,)))
        assert await person.door.idle() == Completed("nice")
    assert UserMessage("p", "look at this", attachments=(image,)) in provider.requests[1].messages


async def test_a_steer_with_an_image_that_becomes_the_next_turn_keeps_its_image_even_when_edited() -> None:
    hang, image = Hang(), Attachment("image/png", data="AAAA")
    provider = ScriptedProvider([[hang], ["nice"]])
    async with running(make_bench(provider, rules=Rules(AfterStop.RUN))) as person:
        await person.say("go")
        await hang.reached.wait()
        await person.door.say(Say("p", "look", Delivery.STEER, attachments=(image,)))
        assert await person.door.change(Edit("e", "p", "look here")) is None
        await person.stop()
        assert await person.door.idle() == Completed("nice")
    assert UserMessage("p", "look here", attachments=(image,)) in provider.requests[1].messages


async def test_an_interrupt_that_lands_after_the_turns_end_does_nothing_to_the_next_turn() -> None:
    provider = ScriptedProvider([["one"], ["two"]])
    async with running(make_bench(provider)) as person:
        first = await person.say("first")
        await person.door.idle()
        assert await person.stop() is None
        assert await person.stop(turn=first.turn or "") is None
        await person.say("second")
        assert await person.door.idle() == Completed("two")


async def test_an_interrupt_that_names_another_turn_has_no_effect() -> None:
    hang = Hang()
    provider = ScriptedProvider([["one"], [hang]])
    async with running(make_bench(provider)) as person:
        first = await person.say("first")
        await person.door.idle()
        second = await person.say("second")
        await hang.reached.wait()
        assert await person.stop(turn=first.turn or "") is None
        assert not hang.closed.is_set()
        settled = await person.stop(turn=second.turn or "")
    assert settled is not None
    assert settled.turn == second.turn


async def test_two_stops_at_once_get_the_same_settlement() -> None:
    hang = Hang()
    async with running(make_bench(ScriptedProvider([[hang]]))) as person:
        await person.say("go")
        await hang.reached.wait()
        first, second = await asyncio.gather(person.stop(), person.stop())
    assert first is not None
    assert first == second
    assert person.screen.outcomes == [Interrupted("user")]


@pytest.mark.parametrize(
    ("rule", "after", "is_run"),
    [
        (AfterStop.HOLD, ["queued", "queued", "held", "held"], False),
        (AfterStop.RUN, ["queued", "queued"], True),
        (AfterStop.EDIT, ["queued", "queued", "withdrawn"], False),
    ],
)
async def test_a_stop_does_with_the_queue_what_the_rule_says(rule: AfterStop, after: list[str], is_run: bool) -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["ran"]])
    async with running(make_bench(provider, rules=Rules(rule))) as person:
        await person.say("go")
        await hang.reached.wait()
        await person.say("later", Delivery.QUEUE, "q")
        await person.stop()
        await person.door.idle()
        states = person.screen.states("q")
    assert (len(provider.requests) == 2) is is_run
    assert states[0] == "queued"
    assert states[-1] == ("started" if is_run else after[-1])


@pytest.mark.parametrize(
    ("delivery", "order"),
    [
        (Delivery.INTERRUPT, ["go", "new", "held"]),
        (Delivery.QUEUE, ["go", "held", "new"]),
        (Delivery.STEER, ["go", "held", "new"]),
    ],
)
async def test_the_next_message_of_any_delivery_releases_what_a_stop_held(delivery: Delivery, order: list[str]) -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["a"], ["b"]])
    async with running(make_bench(provider)) as person:
        await person.say("go")
        await hang.reached.wait()
        await person.say("held", Delivery.QUEUE, "q")
        await person.stop()
        await person.door.idle()
        assert [item.state for item in await person.door.queue()] == ["held"]
        await person.say("new", delivery)
        await person.door.idle()
        assert await person.door.queue() == []
    assert said(provider.requests[-1]) == order


async def test_a_message_queued_right_after_a_stop_is_not_wiped_by_its_settlement() -> None:
    tool = HangingTool()
    provider = ScriptedProvider([asks_for("wait"), ["next"]])
    async with running(make_bench(provider, tools=[tool])) as person:
        await person.say("go")
        await tool.started.wait()
        stopping = asyncio.create_task(person.stop())
        await asyncio.sleep(0)
        receipt = await person.say("then this", Delivery.QUEUE)
        await stopping
        assert await person.door.idle() == Completed("next")
    assert receipt.state in ("queued", "started")
    assert said(provider.requests[1]) == ["go", "then this"]


async def test_the_queue_can_be_edited_moved_and_withdrawn() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["x"], ["y"]])
    async with running(make_bench(provider, rules=Rules(AfterStop.RUN))) as person:
        await person.say("go")
        await hang.reached.wait()
        for name in ("a", "b", "c"):
            await person.say(name, Delivery.QUEUE, name)
        assert await person.door.change(Edit("1", "a", "A")) is None
        assert await person.door.change(Move("2", "c", 1)) is None
        assert await person.door.change(Withdraw("3", "b")) is None
        assert [item.text for item in await person.door.queue()] == ["c", "A"]
        gone = await person.door.change(Edit("4", "b", "too late"))
        await person.stop()
        await person.door.idle()
        taken = await person.door.change(Withdraw("5", "a"))
    assert said(provider.requests[2]) == ["go", "c", "A"]
    assert gone is not None
    assert taken is not None
    assert (gone.code, taken.code) == ("not_waiting", "not_waiting")
    assert person.screen.states("b") == ["queued", "queued", "withdrawn"]


async def test_a_known_id_is_a_duplicate_and_changes_nothing() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["next"]])
    async with running(make_bench(provider)) as person:
        await person.say("go", name="x")
        await hang.reached.wait()
        assert (await person.say("go", name="x")).state == "duplicate"
        assert not hang.closed.is_set()


async def test_the_next_request_says_once_that_the_turn_was_cut_and_repeats_nothing() -> None:
    hang = Hang()
    provider = ScriptedProvider([["some words", hang], ["next"]])
    async with running(make_bench(provider)) as person:
        await person.say("go")
        await hang.reached.wait()
        await person.stop()
        await person.say("on")
        await person.door.idle()
    notes = [message.text for message in provider.requests[1].messages if isinstance(message, Note)]
    assert len(notes) == 1
    assert "interrupted: user" in notes[0]
    assert "some words" not in notes[0]


async def test_a_session_is_busy_in_its_own_and_no_other_session_waits_for_it() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["other"]])
    bench = make_bench(provider)
    async with running(bench) as person:
        await person.say("go")
        await hang.reached.wait()
        async with running(make_bench(provider, bench.store), "other") as neighbour:
            await neighbour.say("hi", name="n")
            assert await neighbour.door.idle() == Completed("other")
        assert not hang.closed.is_set()


async def test_a_close_settles_the_turn_as_a_shutdown_and_keeps_what_waits() -> None:
    hang, store = Hang(), GatedStore()
    provider = ScriptedProvider([["par", hang]])
    async with running(make_bench(provider, store)) as person:
        await person.say("go")
        await hang.reached.wait()
        await person.say("later", Delivery.QUEUE, "q")
    assert hang.closed.is_set()
    again = ScriptedProvider([["later done"]])
    async with running(make_bench(again, store), sweeps=True) as person:
        assert await person.door.idle() == Completed("later done")
        assert person.screen.outcomes[-1:] == [Completed("later done")]
    assert said(again.requests[0]) == ["go", "later"]
