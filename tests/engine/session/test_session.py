"""Sessions: messages, deliveries and stops from the user's point of view."""

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
from tests.engine.engine_fixture import FakeTool, GatedStore, HangingTool, call_chunks, make_services, run_session
from tests.waiting import at_most


def user_texts(request: Request) -> list[str]:
    """Return the texts of the user's messages in a request."""
    return [message.text for message in request.messages if isinstance(message, UserMessage)]


async def test_a_message_starts_a_turn_and_the_reply_is_its_outcome() -> None:
    provider = ScriptedProvider([[TextChunk("hello "), TextChunk("you")]])
    async with run_session(make_services(provider)) as user:
        receipt = await user.say("hi")
        outcome = await user.proxy.idle()
    assert receipt.state == "started"
    assert receipt.turn == "demo.t1"
    assert outcome == Completed("hello you")
    assert user.recorder.text == "hello you"


async def test_a_message_that_interrupts_runs_as_the_next_turn() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], [TextChunk("done")]])
    async with run_session(make_services(provider)) as user:
        await user.say("long task")
        await hang.reached.wait()
        receipt = await user.say("no, this instead", Delivery.INTERRUPT)
        await user.recorder.wait_until(lambda: len(user.recorder.outcomes) == 2)
    assert receipt.state == "interrupting"
    assert user.recorder.outcomes == [Interrupted("new message"), Completed("done")]
    assert user.recorder.receipt_states("m2") == ["interrupting", "started"]


async def test_a_stop_before_a_turns_start_is_durable_stops_that_turn() -> None:
    store, hang = GatedStore(), Hang()
    provider = ScriptedProvider([[hang], ["never"]])
    async with run_session(make_services(provider, store)) as user:
        await user.say("first")
        await hang.reached.wait()
        store.journal.block_from(TurnEnded)
        saying = asyncio.create_task(user.say("second"))
        await store.journal.gate.reached.wait()  # contains the end of the first turn and the start of the second
        stopping = asyncio.create_task(user.stop())
        await asyncio.sleep(0)
        store.journal.gate.open()
        settled = await stopping
        assert (await saying).state in ("interrupting", "started")
        await user.proxy.idle()
    assert settled is not None
    assert settled.outcome == Interrupted("user")
    assert user.recorder.outcomes == [Interrupted("new message"), Interrupted("user")]
    assert len(provider.requests) == 1


async def test_a_close_before_a_turns_start_is_durable_ends_that_turn() -> None:
    store, hangs = GatedStore(), [Hang(), Hang()]
    provider = ScriptedProvider([[hangs[0]], [hangs[1]]])
    async with run_session(make_services(provider, store)) as user:
        await user.say("first")
        await hangs[0].reached.wait()
        store.journal.block_from(TurnEnded)
        saying = asyncio.create_task(user.say("second"))
        await store.journal.gate.reached.wait()
        user.proxy.close()
        store.journal.gate.open()
        await saying
        async with asyncio.timeout(at_most(1)):
            await user.recorder.closed.wait()
    assert len(provider.requests) == 1


async def test_six_messages_queued_during_a_turn_all_run_once_and_in_order() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], *[[f"r{number}"] for number in range(6)]])
    async with run_session(make_services(provider, rules=Rules(AfterStop.RUN))) as user:
        await user.say("go")
        await hang.reached.wait()
        receipts = [await user.say(f"q{number}", Delivery.QUEUE) for number in range(6)]
        await user.stop()
        assert await user.proxy.idle() == Completed("r5")
    assert [receipt.position for receipt in receipts] == [1, 2, 3, 4, 5, 6]
    assert user_texts(provider.requests[-1]) == ["go", *[f"q{number}" for number in range(6)]]
    assert len(provider.requests) == 7


async def test_six_interrupting_messages_in_a_burst_start_one_turn_together() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["all"]])
    async with run_session(make_services(provider)) as user:
        await user.say("go")
        await hang.reached.wait()
        receipts = await asyncio.gather(*(user.say(f"i{number}") for number in range(6)))
        assert await user.proxy.idle() == Completed("all")
    assert {receipt.state for receipt in receipts} <= {ReceiptState.INTERRUPTING, ReceiptState.STARTED}
    assert user_texts(provider.requests[1]) == ["go", *[f"i{number}" for number in range(6)]]


async def test_a_steer_and_a_later_queued_message_both_reach_the_model() -> None:
    tool = HangingTool()
    provider = ScriptedProvider([call_chunks("wait"), ["steered"], ["queued"]])
    async with run_session(make_services(provider, tools=[tool])) as user:
        await user.say("go")
        await tool.started.wait()
        steer = await user.say("also this", Delivery.STEER, "s")
        queued = await user.say("then that", Delivery.QUEUE, "q")
        assert (steer.state, queued.state) == ("steering", "queued")
        await user.say("now", Delivery.INTERRUPT, "i")
        await user.proxy.idle()
    assert user_texts(provider.requests[1]) == ["go", "also this", "now"]
    assert user_texts(provider.requests[2]) == ["go", "also this", "now", "then that"]


async def test_a_steer_that_its_turn_did_not_accept_starts_the_next_turn() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["next"]])
    async with run_session(make_services(provider, rules=Rules(AfterStop.RUN))) as user:
        await user.say("go")
        await hang.reached.wait()
        assert (await user.say("more", Delivery.STEER, "s")).state == "steering"
        await user.stop()
        assert await user.proxy.idle() == Completed("next")
    assert user.recorder.receipt_states("s")[-1] == "started"
    assert user_texts(provider.requests[1]) == ["go", "more"]


async def test_a_waiting_tool_is_notified_of_a_steer() -> None:
    started = asyncio.Event()

    async def work(context: CallContext) -> ToolOutput:
        started.set()
        await context.wait_for_steer()
        return ToolOutput("ended early")

    provider = ScriptedProvider([call_chunks("wait"), ["good"]])
    async with run_session(make_services(provider, tools=[FakeTool("wait", work)])) as user:
        await user.say("go")
        await started.wait()
        await user.say("hurry", Delivery.STEER, "s")
        assert await user.proxy.idle() == Completed("good")
    assert user.recorder.receipt_states("s") == ["steering", "steered"]
    assert user_texts(provider.requests[1]) == ["go", "hurry"]


async def test_an_interrupting_message_with_an_image_keeps_its_image() -> None:
    hang, image = Hang(), Attachment("image/png", data="AAAA")
    provider = ScriptedProvider([[hang], ["nice"]])
    async with run_session(make_services(provider)) as user:
        await user.say("go")
        await hang.reached.wait()
        await user.proxy.say(Say("p", "look at this", Delivery.INTERRUPT, attachments=(image,)))
        assert await user.proxy.idle() == Completed("nice")
    assert UserMessage("p", "look at this", attachments=(image,)) in provider.requests[1].messages


async def test_an_edited_steer_that_starts_the_next_turn_keeps_its_image() -> None:
    hang, image = Hang(), Attachment("image/png", data="AAAA")
    provider = ScriptedProvider([[hang], ["nice"]])
    async with run_session(make_services(provider, rules=Rules(AfterStop.RUN))) as user:
        await user.say("go")
        await hang.reached.wait()
        await user.proxy.say(Say("p", "look", Delivery.STEER, attachments=(image,)))
        assert await user.proxy.change(Edit("e", "p", "look here")) is None
        await user.stop()
        assert await user.proxy.idle() == Completed("nice")
    assert UserMessage("p", "look here", attachments=(image,)) in provider.requests[1].messages


async def test_an_interrupt_after_the_turns_end_does_not_affect_the_next_turn() -> None:
    provider = ScriptedProvider([["one"], ["two"]])
    async with run_session(make_services(provider)) as user:
        first = await user.say("first")
        await user.proxy.idle()
        assert await user.stop() is None
        assert await user.stop(turn=first.turn or "") is None
        await user.say("second")
        assert await user.proxy.idle() == Completed("two")


async def test_an_interrupt_that_names_another_turn_has_no_effect() -> None:
    hang = Hang()
    provider = ScriptedProvider([["one"], [hang]])
    async with run_session(make_services(provider)) as user:
        first = await user.say("first")
        await user.proxy.idle()
        second = await user.say("second")
        await hang.reached.wait()
        assert await user.stop(turn=first.turn or "") is None
        assert not hang.closed.is_set()
        settled = await user.stop(turn=second.turn or "")
    assert settled is not None
    assert settled.turn == second.turn


async def test_two_concurrent_stops_get_the_same_settlement() -> None:
    hang = Hang()
    async with run_session(make_services(ScriptedProvider([[hang]]))) as user:
        await user.say("go")
        await hang.reached.wait()
        first, second = await asyncio.gather(user.stop(), user.stop())
    assert first is not None
    assert first == second
    assert user.recorder.outcomes == [Interrupted("user")]


@pytest.mark.parametrize(
    ("rule", "after", "is_run"),
    [
        (AfterStop.HOLD, ["queued", "queued", "held", "held"], False),
        (AfterStop.RUN, ["queued", "queued"], True),
        (AfterStop.EDIT, ["queued", "queued", "withdrawn"], False),
    ],
)
async def test_a_stop_holds_runs_or_withdraws_queued_messages_depending_on_after_stop(
    rule: AfterStop, after: list[str], is_run: bool
) -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["ran"]])
    async with run_session(make_services(provider, rules=Rules(rule))) as user:
        await user.say("go")
        await hang.reached.wait()
        await user.say("later", Delivery.QUEUE, "q")
        await user.stop()
        await user.proxy.idle()
        states = user.recorder.receipt_states("q")
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
async def test_the_next_message_with_any_delivery_releases_a_held_queue(delivery: Delivery, order: list[str]) -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["a"], ["b"]])
    async with run_session(make_services(provider)) as user:
        await user.say("go")
        await hang.reached.wait()
        await user.say("held", Delivery.QUEUE, "q")
        await user.stop()
        await user.proxy.idle()
        assert [item.state for item in await user.proxy.queue()] == ["held"]
        await user.say("new", delivery)
        await user.proxy.idle()
        assert await user.proxy.queue() == []
    assert user_texts(provider.requests[-1]) == order


async def test_a_message_queued_right_after_a_stop_is_not_lost_when_the_turn_settles() -> None:
    tool = HangingTool()
    provider = ScriptedProvider([call_chunks("wait"), ["next"]])
    async with run_session(make_services(provider, tools=[tool])) as user:
        await user.say("go")
        await tool.started.wait()
        stopping = asyncio.create_task(user.stop())
        await asyncio.sleep(0)
        receipt = await user.say("then this", Delivery.QUEUE)
        await stopping
        assert await user.proxy.idle() == Completed("next")
    assert receipt.state in ("queued", "started")
    assert user_texts(provider.requests[1]) == ["go", "then this"]


async def test_queued_messages_can_be_edited_moved_and_withdrawn() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["x"], ["y"]])
    async with run_session(make_services(provider, rules=Rules(AfterStop.RUN))) as user:
        await user.say("go")
        await hang.reached.wait()
        for name in ("a", "b", "c"):
            await user.say(name, Delivery.QUEUE, name)
        assert await user.proxy.change(Edit("1", "a", "A")) is None
        assert await user.proxy.change(Move("2", "c", 1)) is None
        assert await user.proxy.change(Withdraw("3", "b")) is None
        assert [item.text for item in await user.proxy.queue()] == ["c", "A"]
        withdrawn = await user.proxy.change(Edit("4", "b", "too late"))
        await user.stop()
        await user.proxy.idle()
        consumed = await user.proxy.change(Withdraw("5", "a"))
    assert user_texts(provider.requests[2]) == ["go", "c", "A"]
    assert withdrawn is not None
    assert consumed is not None
    assert (withdrawn.code, consumed.code) == ("not_waiting", "not_waiting")
    assert user.recorder.receipt_states("b") == ["queued", "queued", "withdrawn"]


async def test_a_duplicate_id_is_reported_and_changes_nothing() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["next"]])
    async with run_session(make_services(provider)) as user:
        await user.say("go", message_id="x")
        await hang.reached.wait()
        assert (await user.say("go", message_id="x")).state == "duplicate"
        assert not hang.closed.is_set()


async def test_the_next_request_has_one_interruption_note_without_the_partial_reply() -> None:
    hang = Hang()
    provider = ScriptedProvider([["some words", hang], ["next"]])
    async with run_session(make_services(provider)) as user:
        await user.say("go")
        await hang.reached.wait()
        await user.stop()
        await user.say("on")
        await user.proxy.idle()
    notes = [message.text for message in provider.requests[1].messages if isinstance(message, Note)]
    assert len(notes) == 1
    assert "interrupted: user" in notes[0]
    assert "some words" not in notes[0]


async def test_a_busy_session_does_not_block_other_sessions() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["other"]])
    services = make_services(provider)
    async with run_session(services) as user:
        await user.say("go")
        await hang.reached.wait()
        async with run_session(make_services(provider, services.store), "other") as neighbour:
            await neighbour.say("hi", message_id="n")
            assert await neighbour.proxy.idle() == Completed("other")
        assert not hang.closed.is_set()


async def test_a_close_interrupts_the_turn_and_keeps_queued_messages_for_the_next_owner() -> None:
    hang, store = Hang(), GatedStore()
    provider = ScriptedProvider([["par", hang]])
    async with run_session(make_services(provider, store)) as user:
        await user.say("go")
        await hang.reached.wait()
        await user.say("later", Delivery.QUEUE, "q")
    assert hang.closed.is_set()
    again = ScriptedProvider([["later done"]])
    async with run_session(make_services(again, store), adopts_work=True) as user:
        assert await user.proxy.idle() == Completed("later done")
        assert user.recorder.outcomes[-1:] == [Completed("later done")]
    assert user_texts(again.requests[0]) == ["go", "later"]
