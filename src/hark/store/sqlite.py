"""A store in one SQLite file, shared by the processes of one machine."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Protocol

import anyio

from hark.disk.sqlite_file import open_reader
from hark.protocol.clock import Clock
from hark.protocol.commands import Command
from hark.protocol.records import AnyRecord
from hark.protocol.store import Accepted, Bus, Entry, Lease, SessionLine, StoreError, Summary
from hark.store import rows
from hark.store.committer import Committer, CommitThread
from hark.store.database_file import connect
from hark.store.local_bus import LocalBus, bus_directory
from hark.store.rows import Append, encode
from hark.store.sqlite_search import SqliteSearch

LEASE_SECONDS = 10.0
CLOSE_SECONDS = 2.0
INDEX_NAME = "search.db"


class SqliteInbox:
    """The inbox; the first step of a put is its place in the order."""

    def __init__(self, writes: Committer, reads: Committer) -> None:
        self._writes = writes
        self._reads = reads

    async def put(self, session: str, command: Command) -> Accepted:
        """Accept a command, durably and once."""
        name, body = command.id, encode(command)
        return await self._writes.submit(lambda connection: rows.put(connection, session, name, body))

    async def after(self, session: str, seq: int) -> list[Entry]:
        """Return the entries behind `seq`, in order."""
        return await self._reads.submit(lambda connection: rows.after(connection, session, seq))

    async def unread(self) -> list[str]:
        """Return the sessions with entries that their owner has not decided about yet."""
        return await self._reads.submit(rows.unread)

    async def unfinished(self) -> list[str]:
        """Return the sessions that have work."""
        return await self._reads.submit(rows.unfinished)


class SqliteJournal:
    """The journal; the first step of an append is its place in the order."""

    def __init__(self, writes: Committer, reads: Committer, search: SqliteSearch | None = None) -> None:
        """`search` is told of what is deleted."""
        self._writes = writes
        self._reads = reads
        self._search = search

    async def append(self, lease: Lease, expected: int, records: Sequence[AnyRecord], summary: Summary) -> None:
        """Append all records or none, durably, if the lease holds and the journal has `expected` records."""
        await self._writes.submit(Append(lease, expected, records, summary))

    async def read(self, session: str, after: int = 0) -> list[AnyRecord]:
        """Return the records behind the first `after`."""
        return await self._reads.submit(lambda connection: rows.read(connection, session, after))

    async def sessions(self) -> list[SessionLine]:
        """Return all sessions, the last changed first."""
        return await self._reads.submit(rows.sessions)

    async def delete(self, session: str) -> bool:
        """Forget a session wholly; whoever owned it loses its lease."""
        was_there = await self._writes.submit(lambda connection: rows.delete(connection, session))
        if was_there and self._search is not None:
            await self._search.forget()
        return was_there


class SqliteLeases:
    """The leases of one owner, kept alive by one row whatever their number."""

    def __init__(
        self, writes: Committer, owner: str, clock: Clock, is_alive: Callable[[str], bool], lease_seconds: float
    ) -> None:
        """`is_alive` says of another owner whether its process lives; it must not block."""
        self._writes = writes
        self._owner = owner
        self._clock = clock
        self._is_alive = is_alive
        self.seconds = lease_seconds  # how long a lease lasts without a renewal

    async def acquire(self, session: str) -> Lease | None:
        """Own a session, with a higher epoch than any before; None while another live owner has it."""
        owner, now, is_alive = self._owner, self._clock.now(), self._is_alive
        return await self._writes.submit(lambda connection: rows.acquire(connection, session, owner, now, is_alive))

    async def is_owned(self, session: str) -> bool:
        """Tell whether a live process owns a session."""
        now, is_alive = self._clock.now(), self._is_alive
        return await self._writes.submit(lambda connection: rows.is_owned(connection, session, now, is_alive))

    async def renew(self) -> None:
        """Say that this process lives."""
        owner, expires_at = self._owner, self._clock.now() + self.seconds
        await self._writes.submit(lambda connection: rows.beat(connection, owner, expires_at))

    async def release(self, lease: Lease) -> None:
        """Give a session up; a lease that is another's by now is left alone."""
        await self._writes.submit(lambda connection: rows.release(connection, lease))

    async def enter(self) -> None:
        """Say that this process lives, and forget those that don't."""
        now = self._clock.now()
        await self._writes.submit(lambda connection: rows.sweep_owners(connection, now))
        await self.renew()

    async def leave(self) -> None:
        """Give up all sessions."""
        owner = self._owner
        await self._writes.submit(lambda connection: rows.leave(connection, owner))


class ClosableBus(Bus, Protocol):
    """A bus that ends with its store."""

    def close(self) -> None:
        """Leave the bus."""
        ...


class SqliteStore:
    """Inbox, journal and leases of one process, on one database; the search index is a file beside it."""

    def __init__(
        self,
        writes: Committer,
        reads: Committer,
        leases: SqliteLeases,
        bus: ClosableBus,
        search: SqliteSearch | None = None,
        *,
        close_seconds: float = CLOSE_SECONDS,
    ) -> None:
        """Take the parts; `open` makes them for a file, a simulation makes its own."""
        self._writes = writes
        self._reads = reads
        self.search = search or SqliteSearch(reads)
        self.inbox = SqliteInbox(writes, reads)
        self.journal = SqliteJournal(writes, reads, self.search)
        self.leases = leases
        self.bus = bus
        self._close_seconds = close_seconds
        self._is_closed = False

    @classmethod
    async def open(
        cls,
        path: Path,
        owner: str,
        clock: Clock,
        lease_seconds: float = LEASE_SECONDS,
        *,
        close_seconds: float = CLOSE_SECONDS,
    ) -> "SqliteStore":
        """Open the database, made or migrated where needed. `owner` names this process and is never used again.

        Raises:
            StoreUnusable: The database is damaged, newer, or not Hark's. It was not changed.
            StoreError: The file or its directory can't be used.
        """
        async with AsyncExitStack() as on_failure:
            writes = CommitThread(lambda: connect(path))
            on_failure.push_async_callback(_close, writes)
            await writes.submit(lambda _: None)  # the reader needs what the writer makes
            reads = CommitThread(lambda: open_reader(path), begin="BEGIN", limit=1)
            on_failure.push_async_callback(_close, reads)
            bus = LocalBus(bus_directory(path.parent), owner)
            on_failure.callback(bus.close)
            leases = SqliteLeases(writes, owner, clock, bus.is_alive, lease_seconds)
            await leases.enter()
            on_failure.pop_all()
            search = SqliteSearch(reads, path.with_name(INDEX_NAME))
            return cls(writes, reads, leases, bus, search, close_seconds=close_seconds)

    async def close(self) -> None:
        """Commit what was submitted, let go of every lease, fold the log into the file; within two seconds."""
        if self._is_closed:
            return
        self._is_closed = True
        with anyio.move_on_after(self._close_seconds, shield=True):
            # On a full or broken disk the leases stay; they end with the process.
            with suppress(StoreError):
                await self.leases.leave()
            # The writer's connection is the last to be closed, and so the one that folds the log into the file.
            await self._reads.close()
            await self._writes.close()
            await self.search.close()  # last: what it has not finished is made again
        self.bus.close()


async def _close(committer: Committer) -> None:
    with anyio.move_on_after(CLOSE_SECONDS, shield=True):
        await committer.close()
