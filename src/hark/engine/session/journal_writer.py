"""Writes a session's journal in order. Records are announced only after they are durable."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from hark.engine.session.announcements import Announcement, announcements_for, drop_outdated_receipts
from hark.engine.session.state import SessionState
from hark.protocol.records import AnyRecord
from hark.protocol.store import Journal, Lease, StoreError

FLUSH_INTERVAL_SECONDS = 0.1  # deferred records of all sessions are written at the same moments, and so in one commit
DurableCallback = Callable[[AnyRecord, list[Announcement]], None]


class JournalWriter:
    """The only writer of a session's journal.

    Records change the state when they are appended, and are announced when they are durable. So decisions never wait
    for the disk, and users never see anything that a crash could undo.
    """

    def __init__(self, journal: Journal, lease: Lease, state: SessionState) -> None:
        self.state = state
        self._journal = journal
        self._lease = lease
        self._pending: list[_Batch] = []
        self._writer: asyncio.Task[None] | None = None
        self._flush_timer: asyncio.TimerHandle | None = None
        self._durable_callbacks: list[DurableCallback] = []
        self._failure_callbacks: list[Callable[[StoreError], None]] = []
        self._error: StoreError | None = None

    def on_durable(self, callback: DurableCallback) -> None:
        """Call `callback` for each record that becomes durable, in order, with its announcements."""
        self._durable_callbacks.append(callback)

    def append(self, *records: AnyRecord) -> asyncio.Future[None]:
        """Append records. The future is done when they are durable; cancelling the wait doesn't undo the append.

        The future raises StoreError if the records could not be written; nothing can be written after that.
        """
        if records or self._error is not None:
            future = self._enqueue(records)
            self._start_writing()
            return future
        finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        finished.set_result(None)
        return finished

    def append_soon(self, *records: AnyRecord) -> None:
        """Append records that no task waits for. They are written soon, or before the next regular append."""
        self._enqueue(records)
        if self._writer is None and self._flush_timer is None:
            loop = asyncio.get_running_loop()
            self._flush_timer = loop.call_at(
                (loop.time() // FLUSH_INTERVAL_SECONDS + 1) * FLUSH_INTERVAL_SECONDS, self._start_writing
            )

    def _enqueue(self, records: Sequence[AnyRecord]) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._error is not None:
            done.set_exception(self._error)
            done.exception()  # marks the exception as retrieved, because the caller may not be waiting
            return done
        batch = _Batch(self.state.length, records, done)
        for record in records:
            self.state.apply(record)
            batch.announced.append((record, list(announcements_for(self._lease.session, self.state, record))))
        drop_outdated_receipts([news for _, news in batch.announced])
        batch.summary = self.state.summary()
        self._pending.append(batch)
        return done

    def _start_writing(self) -> None:
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        if self._writer is None and self._pending:
            self._writer = asyncio.create_task(self._write(), name=f"log {self._lease.session}")

    @contextmanager
    def announce_together(self) -> Generator[None]:
        """Announce everything that is appended in this context as one group. The context must not await anything."""
        start = len(self._pending)
        yield
        drop_outdated_receipts([news for batch in self._pending[start:] for _, news in batch.announced])

    def on_failure(self, callback: Callable[[StoreError], None]) -> None:
        """Call `callback` once, when the journal can no longer be written."""
        self._failure_callbacks.append(callback)

    def clear_callbacks(self) -> None:
        """Remove all callbacks."""
        self._durable_callbacks.clear()
        self._failure_callbacks.clear()

    async def verify_ownership(self) -> None:
        """Verify that this process still owns the journal, by an empty append.

        Raises:
            StoreError: Another process owns the journal, or the store can't be reached.
        """
        done = self._enqueue(())
        self._start_writing()
        await done

    async def flush(self) -> None:
        """Wait until all appended records are durable.

        Raises:
            StoreError: The records can't be written.
        """
        self._start_writing()
        if self._writer is not None:
            await asyncio.wait([self._writer])
        if self._error is not None:
            raise self._error

    async def _write(self) -> None:
        while self._pending:
            batches, self._pending = self._pending, []
            records = [record for batch in batches for record in batch.records]
            try:
                await self._journal.append(self._lease, batches[0].expected, records, batches[-1].summary)
            except StoreError as error:
                self._fail(error, batches)
                break
            for batch in batches:
                for record, news in batch.announced:
                    for callback in self._durable_callbacks:
                        callback(record, news)
                if not batch.done.done():
                    batch.done.set_result(None)
        self._writer = None

    def _fail(self, error: StoreError, batches: "list[_Batch]") -> None:
        self._error = error
        for batch in [*batches, *self._pending]:
            if not batch.done.done():
                batch.done.set_exception(error)
                batch.done.exception()  # marks the exception as retrieved, because the caller may not be waiting
        self._pending = []
        for callback in self._failure_callbacks:
            callback(error)


class _Batch:
    """Records that were appended by one call."""

    def __init__(self, expected: int, records: Sequence[AnyRecord], done: asyncio.Future[None]) -> None:
        self.expected = expected
        self.records = records
        self.done = done
        self.announced: list[tuple[AnyRecord, list[Announcement]]] = []
        self.summary = _EMPTY_SUMMARY


_EMPTY_SUMMARY = SessionState().summary()
