"""Receipts: the same truth at the owner and at a guest, and a text with what is handed back."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from hark.protocol.commands import Delivery
from hark.protocol.events import ReceiptChanged
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.rules import AfterStop, Rules
from hark.providers.scripted import Hang, Reply, ScriptedProvider
from hark.store.memory import SharedMemory
from tests.engine.engine_fixture import GatedJournal, GatedStore, Person, make_bench, running

UNUSED = ScriptedProvider([])


@asynccontextmanager
async def owner_and_guest(*script: Reply) -> AsyncGenerator[tuple[Person, Person, GatedJournal]]:
    """An owner, a guest, and the journal as the guest reads it."""
    memory, store = SharedMemory(), GatedStore()
    async with running(make_bench(ScriptedProvider(script), GatedStore(memory, "a"))) as owner:
        await owner.door.known()
        store = GatedStore(memory, "b")
        async with running(make_bench(UNUSED, store)) as guest:
            await guest.door.known()
            yield owner, guest, store.journal


@pytest.mark.parametrize(
    ("delivery", "answer", "turns"),
    [
        (Delivery.INTERRUPT, ("started", None), ["new", "held"]),
        (Delivery.QUEUE, ("queued", 1), ["held", "new"]),
        (Delivery.STEER, ("queued", 1), ["held", "new"]),
    ],
)
@pytest.mark.parametrize("is_behind", [False, True])
async def test_a_message_at_the_guest_that_releases_a_hold_is_not_said_to_be_held(
    delivery: Delivery, answer: tuple[str, int | None], turns: list[str], is_behind: bool
) -> None:
    hang, last = Hang(), Hang()
    async with owner_and_guest([hang], [last], ["end"]) as (owner, guest, journal):
        await owner.say("go", name="go")
        await hang.reached.wait()
        await owner.say("later", Delivery.QUEUE, "held")
        await owner.stop()
        await guest.screen.until(lambda: "held" in guest.screen.states("held"))
        if is_behind:
            journal.read_gate.shut()
        saying = asyncio.create_task(guest.say("on", delivery, "new"))
        await last.reached.wait()
        journal.read_gate.open()
        receipt = await saying
        assert (receipt.state, receipt.position) == answer
        assert "held" not in guest.screen.states("new")
        await guest.stop()
        started = [event.receipt.id for event in owner.screen.all(ReceiptChanged) if event.receipt.state == "started"]
        assert started == ["go", turns[0]]


@pytest.mark.parametrize("is_behind", [False, True])
async def test_a_message_at_the_guest_that_cuts_the_owners_turn_is_said_to_interrupt(is_behind: bool) -> None:
    hang = Hang()
    async with owner_and_guest(["par", hang], ["two"]) as (owner, guest, journal):
        first = await owner.say("go", name="o1")
        await guest.screen.until(lambda: guest.screen.states("o1") == ["started"])
        await hang.reached.wait()
        if is_behind:
            journal.read_gate.shut()
        saying = asyncio.create_task(guest.say("no, this", name="g1"))
        await owner.screen.ended(2)  # it has started and is over before a guest that is behind reads any of it
        journal.read_gate.open()
        receipt = await saying
        assert (receipt.state, receipt.turn) == ("interrupting", first.turn)
        await guest.screen.ended(2)
        assert guest.screen.states("g1") == ["interrupting", "started"]
        assert owner.screen.states("g1") == ["interrupting", "started"]
        assert guest.screen.outcomes == [Interrupted("new message"), Completed("two")]


async def test_what_a_stop_hands_back_comes_with_its_text_to_the_owner_and_to_the_guest() -> None:
    memory, hang = SharedMemory(), Hang()
    bench = make_bench(ScriptedProvider([[hang]]), GatedStore(memory, "a"), rules=Rules(AfterStop.EDIT))
    async with running(bench) as owner:
        await owner.say("go", name="go")
        async with running(make_bench(UNUSED, GatedStore(memory, "b"))) as guest:
            await hang.reached.wait()
            await guest.door.known()
            await owner.say("one", Delivery.QUEUE, "q1")
            await owner.say("two\nlines", Delivery.STEER, "q2")
            settled = await owner.stop()
            for person in (owner, guest):
                await person.screen.ended(1)
                receipts = [event.receipt for event in person.screen.all(ReceiptChanged)]
                back = {receipt.id: receipt.text for receipt in receipts if receipt.state == "withdrawn"}
                assert back == {"q1": "one", "q2": "two\nlines"}
                assert [receipt.text for receipt in receipts if receipt.state != "withdrawn"] == [None] * (
                    len(receipts) - 2
                )
                assert await person.door.queue() == []
    assert settled is not None
    assert settled.outcome == Interrupted("user")
