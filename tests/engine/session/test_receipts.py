"""Receipts are the same at the owner and at a follower, and withdrawn messages are returned with their text."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from hark.protocol.commands import Delivery
from hark.protocol.events import ReceiptChanged
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.rules import AfterStop, Rules
from hark.providers.scripted import Hang, ScriptedProvider, ScriptedReply
from hark.store.memory import SharedMemory
from tests.engine.engine_fixture import GatedJournal, GatedStore, SessionUser, make_services, run_session

UNUSED = ScriptedProvider([])


@asynccontextmanager
async def run_owner_and_follower(
    *script: ScriptedReply,
) -> AsyncGenerator[tuple[SessionUser, SessionUser, GatedJournal]]:
    """Yield the owner, a follower, and the journal that the follower reads."""
    memory, store = SharedMemory(), GatedStore()
    async with run_session(make_services(ScriptedProvider(script), GatedStore(memory, "a"))) as owner:
        await owner.proxy.wait_until_loaded()
        store = GatedStore(memory, "b")
        async with run_session(make_services(UNUSED, store)) as follower:
            await follower.proxy.wait_until_loaded()
            yield owner, follower, store.journal


@pytest.mark.parametrize(
    ("delivery", "answer", "turns"),
    [
        (Delivery.INTERRUPT, ("started", None), ["new", "held"]),
        (Delivery.QUEUE, ("queued", 1), ["held", "new"]),
        (Delivery.STEER, ("queued", 1), ["held", "new"]),
    ],
)
@pytest.mark.parametrize("is_behind", [False, True])
async def test_a_message_to_the_follower_that_releases_a_held_queue_is_never_reported_as_held(
    delivery: Delivery, answer: tuple[str, int | None], turns: list[str], is_behind: bool
) -> None:
    hang, last = Hang(), Hang()
    async with run_owner_and_follower([hang], [last], ["end"]) as (owner, follower, journal):
        await owner.say("go", message_id="go")
        await hang.reached.wait()
        await owner.say("later", Delivery.QUEUE, "held")
        await owner.stop()
        await follower.recorder.wait_until(lambda: "held" in follower.recorder.receipt_states("held"))
        if is_behind:
            journal.read_gate.shut()
        saying = asyncio.create_task(follower.say("on", delivery, "new"))
        await last.reached.wait()
        journal.read_gate.open()
        receipt = await saying
        assert (receipt.state, receipt.position) == answer
        assert "held" not in follower.recorder.receipt_states("new")
        await follower.stop()
        started = [
            event.receipt.id for event in owner.recorder.of_kind(ReceiptChanged) if event.receipt.state == "started"
        ]
        assert started == ["go", turns[0]]


@pytest.mark.parametrize("is_behind", [False, True])
async def test_a_message_to_the_follower_that_interrupts_the_owners_turn_is_reported_as_interrupting(
    is_behind: bool,
) -> None:
    hang = Hang()
    async with run_owner_and_follower(["par", hang], ["two"]) as (owner, follower, journal):
        first = await owner.say("go", message_id="o1")
        await follower.recorder.wait_until(lambda: follower.recorder.receipt_states("o1") == ["started"])
        await hang.reached.wait()
        if is_behind:
            journal.read_gate.shut()
        saying = asyncio.create_task(follower.say("no, this", message_id="g1"))
        await owner.recorder.wait_for_turns(2)  # the new turn starts and ends before a delayed follower reads any of it
        journal.read_gate.open()
        receipt = await saying
        assert (receipt.state, receipt.turn) == ("interrupting", first.turn)
        await follower.recorder.wait_for_turns(2)
        assert follower.recorder.receipt_states("g1") == ["interrupting", "started"]
        assert owner.recorder.receipt_states("g1") == ["interrupting", "started"]
        assert follower.recorder.outcomes == [Interrupted("new message"), Completed("two")]


async def test_messages_withdrawn_by_a_stop_are_returned_with_their_text_to_owner_and_follower() -> None:
    memory, hang = SharedMemory(), Hang()
    services = make_services(ScriptedProvider([[hang]]), GatedStore(memory, "a"), rules=Rules(AfterStop.EDIT))
    async with run_session(services) as owner:
        await owner.say("go", message_id="go")
        async with run_session(make_services(UNUSED, GatedStore(memory, "b"))) as follower:
            await hang.reached.wait()
            await follower.proxy.wait_until_loaded()
            await owner.say("one", Delivery.QUEUE, "q1")
            await owner.say("two\nlines", Delivery.STEER, "q2")
            settled = await owner.stop()
            for user in (owner, follower):
                await user.recorder.wait_for_turns(1)
                receipts = [event.receipt for event in user.recorder.of_kind(ReceiptChanged)]
                withdrawn = {receipt.id: receipt.text for receipt in receipts if receipt.state == "withdrawn"}
                assert withdrawn == {"q1": "one", "q2": "two\nlines"}
                assert [receipt.text for receipt in receipts if receipt.state != "withdrawn"] == [None] * (
                    len(receipts) - 2
                )
                assert await user.proxy.queue() == []
    assert settled is not None
    assert settled.outcome == Interrupted("user")
