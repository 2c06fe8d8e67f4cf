"""A journal that refuses writes during a turn: no caller blocks, all are notified, and nothing is lost."""

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
from hark.providers.scripted import Hang, ScriptedProvider, ScriptedReply
from tests.engine.engine_fixture import GatedStore, SessionUser, make_services, run_session
from tests.waiting import at_most

FULL = "The disk is full."
SOON_SECONDS = at_most(0.5)


@pytest.fixture(autouse=True)
def _recover_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "RECOVER_SECONDS", 0.1)


@asynccontextmanager
async def session_with_full_store(*script: ScriptedReply) -> AsyncGenerator[tuple[SessionUser, GatedStore]]:
    """Yield a session with a hanging turn, a queued message, and a journal that refuses all writes."""
    store, hang = GatedStore(), Hang()
    async with run_session(make_services(ScriptedProvider([["par", hang], *script]), store)) as user:
        await user.say("go", message_id="go")
        await hang.reached.wait()
        await user.say("later", Delivery.QUEUE, "q")
        store.journal.error = StoreError(FULL)
        yield user, store
        store.journal.error = None


async def test_a_stop_returns_none_and_a_notice_explains_why_when_the_store_is_full() -> None:
    async with session_with_full_store() as (user, _):
        async with asyncio.timeout(SOON_SECONDS):
            assert await user.stop() is None
        notice = await user.recorder.wait_for(Notice)
        assert (notice.code, notice.turn) == ("store", None)
        assert FULL in notice.text
        assert user.recorder.outcomes == []


async def test_the_first_and_later_changes_are_refused_when_the_store_is_full() -> None:
    async with session_with_full_store() as (user, _):
        async with asyncio.timeout(SOON_SECONDS):
            first = await user.proxy.change(Withdraw("w1", "q"))
            await user.recorder.wait_for(Notice)
            second = await user.proxy.change(ChooseRoute("r1", "main"))
        for refusal in (first, second):
            assert isinstance(refusal, Refusal)
            assert (refusal.code, refusal.message) == ("store", FULL)


@pytest.mark.parametrize("is_before", [True, False])
async def test_waiting_for_idle_raises_the_stores_error_when_the_store_is_full(is_before: bool) -> None:
    async with session_with_full_store() as (user, _):
        waiting = asyncio.create_task(user.proxy.idle())
        if is_before:
            await asyncio.sleep(0)  # let the task wait for the turn first
        async with asyncio.timeout(SOON_SECONDS):
            await user.stop()
            with pytest.raises(StoreError, match=FULL):
                await waiting
            with pytest.raises(StoreError, match=FULL):
                await user.proxy.idle()


async def test_the_session_resumes_without_loss_or_duplicates_when_the_store_works_again() -> None:
    async with session_with_full_store(["two"], ["three"]) as (user, store):
        saying = asyncio.create_task(user.say("and this", Delivery.QUEUE, "r"))
        await user.recorder.wait_for(Notice)
        await user.recorder.wait_for(Notice, 2)  # reopened, without success
        assert not saying.done()
        store.journal.error = None
        await user.recorder.wait_for_turns(3)
        assert user.recorder.outcomes == [Interrupted("crash"), Completed("two"), Completed("three")]
        assert (await saying).state == "queued"
        assert await user.proxy.idle() == Completed("three")
        messages = user.transcript
        accepted = [event.id for event in user.recorder.of_kind(MessageAccepted)]
    assert [message.text for message in messages if isinstance(message, UserMessage)] == ["go", "later", "and this"]
    assert accepted == ["go", "q", "r"]
