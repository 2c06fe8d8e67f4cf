"""The journal's one writer: decisions never wait for the disk, and nothing is told before it is durable."""

import asyncio

import pytest

from hark.engine.session.announce import Announcement
from hark.engine.session.log import Log
from hark.engine.session.state import SessionState
from hark.protocol.commands import Delivery
from hark.protocol.messages import UserMessage
from hark.protocol.receipts import Receipt
from hark.protocol.records import AnyRecord, Queued, Released, TurnStarted
from hark.protocol.store import LeaseLost, StoreError
from tests.engine.engine_fixture import GatedStore


class Listener:
    """A log on a gated store, with all that it told."""

    def __init__(self) -> None:
        self.store = GatedStore()
        self.told: list[str] = []
        self.receipts: list[tuple[str, str]] = []

    async def log(self) -> Log:
        lease = await self.store.leases.acquire("s")
        assert lease is not None
        log = Log(self.store.journal, lease, SessionState())
        log.on_durable(self._tell)
        return log

    def _tell(self, record: AnyRecord, news: list[Announcement]) -> None:
        self.told.append(type(record).__name__)
        for announcement in news:
            first = announcement.fields[0]
            if isinstance(first, Receipt):
                self.receipts.append((first.id, first.state))


def queued(name: str) -> Queued:
    return Queued(message=UserMessage(name, name), delivery=Delivery.QUEUE)


def started(name: str) -> TurnStarted:
    return TurnStarted(turn="s.t1", messages=(UserMessage(name, name),))


async def test_the_state_changes_at_once_and_people_are_told_when_it_is_durable() -> None:
    listener = Listener()
    log = await listener.log()
    listener.store.journal.gate.shut()
    done = log.append(queued("a"))
    assert log.state.position("a") == 1
    await listener.store.journal.gate.reached.wait()
    assert listener.told == []
    listener.store.journal.gate.open()
    await done
    assert listener.told == ["Queued"]


async def test_records_are_written_in_the_order_in_which_they_were_handed_in() -> None:
    listener = Listener()
    log = await listener.log()
    listener.store.journal.gate.shut()
    futures = [log.append(queued(f"m{number}")) for number in range(50)]
    listener.store.journal.gate.open()
    await asyncio.gather(*futures)
    records = await listener.store.journal.read("s")
    assert [record.message.id for record in records if isinstance(record, Queued)] == [f"m{n}" for n in range(50)]


async def test_cancelling_the_wait_takes_nothing_back() -> None:
    listener = Listener()
    log = await listener.log()
    listener.store.journal.gate.shut()
    log.append(queued("a")).cancel()
    listener.store.journal.gate.open()
    await log.flush()
    assert len(await listener.store.journal.read("s")) == 1
    assert listener.told == ["Queued"]


async def test_a_broken_journal_tells_nothing_and_takes_nothing_more() -> None:
    listener = Listener()
    log = await listener.log()
    broken: list[StoreError] = []
    log.on_broken(broken.append)
    listener.store.journal.error = LeaseLost("another's")
    with pytest.raises(LeaseLost):
        await log.append(queued("a"))
    listener.store.journal.error = None
    with pytest.raises(LeaseLost):
        await log.append(queued("b"))
    with pytest.raises(LeaseLost):
        await log.flush()
    assert listener.told == []
    assert len(broken) == 1
    assert await listener.store.journal.read("s") == []


async def test_of_what_comes_true_at_one_moment_only_the_last_receipt_is_told() -> None:
    listener = Listener()
    log = await listener.log()
    with log.together():
        log.append(queued("a"))
        log.append(Released())
        log.append(started("a"))
    await log.flush()
    assert listener.receipts == [("a", "started")]


async def test_nothing_appended_is_durable_at_once() -> None:
    log = await Listener().log()
    assert log.append().done()
    await log.flush()


async def test_what_can_wait_is_written_by_itself_and_never_behind_what_came_later() -> None:
    listener = Listener()
    log = await listener.log()
    told = asyncio.Event()
    log.on_durable(lambda _record, _news: told.set())
    log.append_soon(queued("a"))
    assert log.state.position("a") == 1
    assert await listener.store.journal.read("s") == []
    await told.wait()
    log.append_soon(queued("b"))
    await log.append(queued("c"))
    log.append_soon(queued("d"))
    await log.flush()
    records = await listener.store.journal.read("s")
    assert [record.message.id for record in records if isinstance(record, Queued)] == ["a", "b", "c", "d"]
    assert listener.told == ["Queued"] * 4


async def test_what_can_wait_is_not_kept_of_a_broken_journal() -> None:
    listener = Listener()
    log = await listener.log()
    broken = asyncio.Event()
    log.on_broken(lambda _error: broken.set())
    listener.store.journal.error = LeaseLost("another's")
    log.append_soon(queued("a"))
    await broken.wait()
    log.append_soon(queued("b"))
    with pytest.raises(LeaseLost):
        await log.flush()
    assert listener.told == []
