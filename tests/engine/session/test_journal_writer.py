"""The journal writer: decisions never wait for the disk, and nothing is announced before it is durable."""

import asyncio

import pytest

from hark.engine.session.announcements import Announcement
from hark.engine.session.journal_writer import JournalWriter
from hark.engine.session.state import SessionState
from hark.protocol.commands import Delivery
from hark.protocol.messages import UserMessage
from hark.protocol.receipts import Receipt
from hark.protocol.records import AnyRecord, Queued, QueueReleased, TurnStarted
from hark.protocol.store import LeaseLost, StoreError
from tests.engine.engine_fixture import GatedStore


class WriterProbe:
    """A journal writer on a gated store, and the records and receipts that it announced."""

    def __init__(self) -> None:
        self.store = GatedStore()
        self.durable_records: list[str] = []
        self.receipts: list[tuple[str, str]] = []

    async def open_writer(self) -> JournalWriter:
        lease = await self.store.leases.acquire("s")
        assert lease is not None
        writer = JournalWriter(self.store.journal, lease, SessionState())
        writer.on_durable(self._record)
        return writer

    def _record(self, record: AnyRecord, announcements: list[Announcement]) -> None:
        self.durable_records.append(type(record).__name__)
        for announcement in announcements:
            first = announcement.fields[0]
            if isinstance(first, Receipt):
                self.receipts.append((first.id, first.state))


def queued_record(name: str) -> Queued:
    return Queued(message=UserMessage(name, name), delivery=Delivery.QUEUE)


def started_record(name: str) -> TurnStarted:
    return TurnStarted(turn="s.t1", messages=(UserMessage(name, name),))


async def test_the_state_changes_immediately_and_callbacks_run_when_records_are_durable() -> None:
    listener = WriterProbe()
    log = await listener.open_writer()
    listener.store.journal.gate.shut()
    done = log.append(queued_record("a"))
    assert log.state.position_of("a") == 1
    await listener.store.journal.gate.reached.wait()
    assert listener.durable_records == []
    listener.store.journal.gate.open()
    await done
    assert listener.durable_records == ["Queued"]


async def test_records_are_written_in_the_order_of_the_appends() -> None:
    listener = WriterProbe()
    log = await listener.open_writer()
    listener.store.journal.gate.shut()
    futures = [log.append(queued_record(f"m{number}")) for number in range(50)]
    listener.store.journal.gate.open()
    await asyncio.gather(*futures)
    records = await listener.store.journal.read("s")
    assert [record.message.id for record in records if isinstance(record, Queued)] == [f"m{n}" for n in range(50)]


async def test_cancelling_the_wait_does_not_undo_an_append() -> None:
    listener = WriterProbe()
    log = await listener.open_writer()
    listener.store.journal.gate.shut()
    log.append(queued_record("a")).cancel()
    listener.store.journal.gate.open()
    await log.flush()
    assert len(await listener.store.journal.read("s")) == 1
    assert listener.durable_records == ["Queued"]


async def test_no_record_is_announced_after_a_failed_write_and_further_appends_are_rejected() -> None:
    listener = WriterProbe()
    log = await listener.open_writer()
    broken: list[StoreError] = []
    log.on_failure(broken.append)
    listener.store.journal.error = LeaseLost("another's")
    with pytest.raises(LeaseLost):
        await log.append(queued_record("a"))
    listener.store.journal.error = None
    with pytest.raises(LeaseLost):
        await log.append(queued_record("b"))
    with pytest.raises(LeaseLost):
        await log.flush()
    assert listener.durable_records == []
    assert len(broken) == 1
    assert await listener.store.journal.read("s") == []


async def test_only_the_last_receipt_of_a_message_is_sent_for_records_announced_together() -> None:
    listener = WriterProbe()
    log = await listener.open_writer()
    with log.announce_together():
        log.append(queued_record("a"))
        log.append(QueueReleased())
        log.append(started_record("a"))
    await log.flush()
    assert listener.receipts == [("a", "started")]


async def test_an_empty_append_is_durable_immediately() -> None:
    log = await WriterProbe().open_writer()
    assert log.append().done()
    await log.flush()


async def test_deferred_records_are_written_automatically_and_before_later_records() -> None:
    listener = WriterProbe()
    log = await listener.open_writer()
    durable = asyncio.Event()
    log.on_durable(lambda _record, _news: durable.set())
    log.append_soon(queued_record("a"))
    assert log.state.position_of("a") == 1
    assert await listener.store.journal.read("s") == []
    await durable.wait()
    log.append_soon(queued_record("b"))
    await log.append(queued_record("c"))
    log.append_soon(queued_record("d"))
    await log.flush()
    records = await listener.store.journal.read("s")
    assert [record.message.id for record in records if isinstance(record, Queued)] == ["a", "b", "c", "d"]
    assert listener.durable_records == ["Queued"] * 4


async def test_deferred_records_are_dropped_when_the_journal_has_failed() -> None:
    listener = WriterProbe()
    log = await listener.open_writer()
    broken = asyncio.Event()
    log.on_failure(lambda _error: broken.set())
    listener.store.journal.error = LeaseLost("another's")
    log.append_soon(queued_record("a"))
    await broken.wait()
    log.append_soon(queued_record("b"))
    with pytest.raises(LeaseLost):
        await log.flush()
    assert listener.durable_records == []
