"""A journal that refuses writes in mid-turn: nobody waits for it, all are told, and nothing is lost."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from hark.engine.session import ownership
from hark.protocol.commands import ChooseRoute, Delivery, Withdraw
from hark.protocol.events import MessageAccepted, Notice
from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.receipts import Refusal
from hark.protocol.store import StoreError
from hark.providers.scripted import Hang, Reply, ScriptedProvider
from tests.engine.engine_fixture import GatedStore, Person, make_bench, running
from tests.waiting import at_most

FULL = "The disk is full."
SOON_SECONDS = at_most(0.5)


@pytest.fixture(autouse=True)
def _opened_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "RECOVER_SECONDS", 0.1)


@asynccontextmanager
async def filled_up(*script: Reply) -> AsyncGenerator[tuple[Person, GatedStore]]:
    """A turn that hangs, a message that waits, and a journal that takes nothing any more."""
    store, hang = GatedStore(), Hang()
    async with running(make_bench(ScriptedProvider([["par", hang], *script]), store)) as person:
        await person.say("go", name="go")
        await hang.reached.wait()
        await person.say("later", Delivery.QUEUE, "q")
        store.journal.error = StoreError(FULL)
        yield person, store
        store.journal.error = None


async def test_a_stop_returns_none_and_the_readers_are_told_why() -> None:
    async with filled_up() as (person, _):
        async with asyncio.timeout(SOON_SECONDS):
            assert await person.stop() is None
        notice = await person.screen.shows(Notice)
        assert (notice.code, notice.turn) == ("store", None)
        assert FULL in notice.text
        assert person.screen.outcomes == []


async def test_a_change_is_refused_whether_it_meets_the_failure_or_comes_after_it() -> None:
    async with filled_up() as (person, _):
        async with asyncio.timeout(SOON_SECONDS):
            first = await person.door.change(Withdraw("w1", "q"))
            await person.screen.shows(Notice)
            second = await person.door.change(ChooseRoute("r1", "main"))
        for refusal in (first, second):
            assert isinstance(refusal, Refusal)
            assert (refusal.code, refusal.message) == ("store", FULL)


@pytest.mark.parametrize("is_before", [True, False])
async def test_whoever_waits_for_the_end_gets_the_stores_error(is_before: bool) -> None:
    async with filled_up() as (person, _):
        waiting = asyncio.create_task(person.door.idle())
        if is_before:
            await asyncio.sleep(0)  # it waits for the turn
        async with asyncio.timeout(SOON_SECONDS):
            await person.stop()
            with pytest.raises(StoreError, match=FULL):
                await waiting
            with pytest.raises(StoreError, match=FULL):
                await person.door.idle()


async def test_when_the_store_works_again_the_session_goes_on_and_nothing_is_lost_or_told_twice() -> None:
    async with filled_up(["two"], ["three"]) as (person, store):
        saying = asyncio.create_task(person.say("and this", Delivery.QUEUE, "r"))
        await person.screen.shows(Notice)
        await person.screen.shows(Notice, 2)  # opened again, and in vain
        assert not saying.done()
        store.journal.error = None
        await person.screen.ended(3)
        assert person.screen.outcomes == [Interrupted("crash"), Completed("two"), Completed("three")]
        assert (await saying).state == "queued"
        assert await person.door.idle() == Completed("three")
        messages = person.transcript
        accepted = [event.id for event in person.screen.all(MessageAccepted)]
    assert [message.text for message in messages if isinstance(message, UserMessage)] == ["go", "later", "and this"]
    assert accepted == ["go", "q", "r"]
