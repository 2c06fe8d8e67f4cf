"""A session's journal and its fold, written in one order; nothing is told before it is durable."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from hark.engine.session.announce import Announcement, announcements, drop_outdated
from hark.engine.session.state import SessionState
from hark.protocol.records import AnyRecord
from hark.protocol.store import Journal, Lease, StoreError

ROUND_SECONDS = 0.1  # what can wait is written by all sessions at the same moments, and so in one commit
Told = Callable[[AnyRecord, list[Announcement]], None]


class Log:
    """The one writer of a session's journal.

    Records change the state when they are handed in and are told when they are durable, so that decisions never wait
    for the disk and people never hear what a crash could take back.
    """

    def __init__(self, journal: Journal, lease: Lease, state: SessionState) -> None:
        self.state = state
        self._journal = journal
        self._lease = lease
        self._pending: list[_Batch] = []
        self._writer: asyncio.Task[None] | None = None
        self._round: asyncio.TimerHandle | None = None
        self._told: list[Told] = []
        self._broken: list[Callable[[StoreError], None]] = []
        self._error: StoreError | None = None

    def on_durable(self, told: Told) -> None:
        """Call `told` for each record that has become durable, in order, with what it means to people."""
        self._told.append(told)

    def append(self, *records: AnyRecord) -> asyncio.Future[None]:
        """Take records now; the future is done when they are durable. Cancelling the wait takes nothing back.

        The future raises StoreError when they could not be written; nothing can be written after that.
        """
        if records or self._error is not None:
            done = self._take(records)
            self._start()
            return done
        nothing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        nothing.set_result(None)
        return nothing

    def append_soon(self, *records: AnyRecord) -> None:
        """Take records that nobody waits for: they are written a moment later, or before the next that can't wait."""
        self._take(records)
        if self._writer is None and self._round is None:
            loop = asyncio.get_running_loop()
            self._round = loop.call_at((loop.time() // ROUND_SECONDS + 1) * ROUND_SECONDS, self._start)

    def _take(self, records: Sequence[AnyRecord]) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._error is not None:
            done.set_exception(self._error)
            done.exception()  # whoever waits gets it; nobody has to
            return done
        batch = _Batch(self.state.length, records, done)
        for record in records:
            self.state.apply(record)
            batch.news.append((record, list(announcements(self._lease.session, self.state, record))))
        drop_outdated([news for _, news in batch.news])
        batch.summary = self.state.summary()
        self._pending.append(batch)
        return done

    def _start(self) -> None:
        if self._round is not None:
            self._round.cancel()
            self._round = None
        if self._writer is None and self._pending:
            self._writer = asyncio.create_task(self._write(), name=f"log {self._lease.session}")

    @contextmanager
    def together(self) -> Generator[None]:
        """Have all that is appended inside become durable, and be told, as one. Nothing may wait inside."""
        first = len(self._pending)
        yield
        drop_outdated([news for batch in self._pending[first:] for _, news in batch.news])

    def on_broken(self, broken: Callable[[StoreError], None]) -> None:
        """Call `broken` once when nothing can be written any more."""
        self._broken.append(broken)

    def let_go(self) -> None:
        """Tell nobody any more."""
        self._told.clear()
        self._broken.clear()

    async def prove(self) -> None:
        """Make sure that the journal is still ours.

        Raises:
            StoreError: It is not, or nobody can tell.
        """
        done = self._take(())
        self._start()
        await done

    async def flush(self) -> None:
        """Wait until all that was taken is durable.

        Raises:
            StoreError: It can't be made durable.
        """
        self._start()
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
                self._break(error, batches)
                break
            for batch in batches:
                for record, news in batch.news:
                    for told in self._told:
                        told(record, news)
                if not batch.done.done():
                    batch.done.set_result(None)
        self._writer = None

    def _break(self, error: StoreError, batches: "list[_Batch]") -> None:
        self._error = error
        for batch in [*batches, *self._pending]:
            if not batch.done.done():
                batch.done.set_exception(error)
                batch.done.exception()  # whoever waits gets it; nobody has to
        self._pending = []
        for broken in self._broken:
            broken(error)


class _Batch:
    """Records that were handed in together."""

    def __init__(self, expected: int, records: Sequence[AnyRecord], done: asyncio.Future[None]) -> None:
        self.expected = expected
        self.records = records
        self.done = done
        self.news: list[tuple[AnyRecord, list[Announcement]]] = []
        self.summary = _NOTHING


_NOTHING = SessionState().summary()
