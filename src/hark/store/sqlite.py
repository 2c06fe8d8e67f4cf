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
from hark.protocol.store import Bus, InboxEntry, Lease, PutResult, SessionListEntry, SessionSummary, StoreError
from hark.store import sqlite_statements
from hark.store.commit_thread import Committer, CommitThread
from hark.store.database_file import connect
from hark.store.local_bus import LocalBus, prepare_bus_directory
from hark.store.sqlite_search import SqliteSearch
from hark.store.sqlite_statements import AppendOperation, encode_body

LEASE_SECONDS = 10.0
CLOSE_SECONDS = 2.0
INDEX_NAME = "search.db"


class SqliteInbox:
    """The inbox in SQLite. Commands are ordered by the moment at which `put` is called."""

    def __init__(self, writer: Committer, reader: Committer) -> None:
        self._writer = writer
        self._reader = reader

    async def put(self, session: str, command: Command) -> PutResult:
        """Accept a command durably. The same id is accepted only once."""
        command_id, body = command.id, encode_body(command)
        return await self._writer.submit(
            lambda connection: sqlite_statements.put(connection, session, command_id, body)
        )

    async def entries_after(self, session: str, seq: int) -> list[InboxEntry]:
        """Return the entries after `seq`, in order."""
        return await self._reader.submit(lambda connection: sqlite_statements.entries_after(connection, session, seq))

    async def unread_sessions(self) -> list[str]:
        """Return the sessions with entries that their owner has not processed yet."""
        return await self._reader.submit(sqlite_statements.unread_sessions)

    async def unfinished_sessions(self) -> list[str]:
        """Return the sessions with pending work."""
        return await self._reader.submit(sqlite_statements.unfinished_sessions)


class SqliteJournal:
    """The journal in SQLite. Appends are ordered by the moment at which `append` is called."""

    def __init__(self, writer: Committer, reader: Committer, search: SqliteSearch | None = None) -> None:
        """Create the journal. `search` is notified of deleted sessions."""
        self._writer = writer
        self._reader = reader
        self._search = search

    async def append(self, lease: Lease, expected: int, records: Sequence[AnyRecord], summary: SessionSummary) -> None:
        """Append all records or none, durably, if the lease holds and the journal has `expected` records."""
        await self._writer.submit(AppendOperation(lease, expected, records, summary))

    async def read(self, session: str, after: int = 0) -> list[AnyRecord]:
        """Return the records after the first `after`."""
        return await self._reader.submit(lambda connection: sqlite_statements.read_journal(connection, session, after))

    async def sessions(self) -> list[SessionListEntry]:
        """Return all sessions, the most recently changed first."""
        return await self._reader.submit(sqlite_statements.list_sessions)

    async def delete(self, session: str) -> bool:
        """Delete a session completely, and revoke its lease."""
        existed = await self._writer.submit(lambda connection: sqlite_statements.delete_session(connection, session))
        if existed and self._search is not None:
            await self._search.remove_deleted_sessions()
        return existed


class SqliteLeases:
    """One owner's leases in SQLite. A single row stores the time until which all of them are valid."""

    def __init__(
        self, writer: Committer, owner: str, clock: Clock, is_alive: Callable[[str], bool], lease_seconds: float
    ) -> None:
        """Create the leases. `is_alive` returns whether another owner's process is alive, and must not block."""
        self._writer = writer
        self._owner = owner
        self._clock = clock
        self._is_alive = is_alive
        self.seconds = lease_seconds  # how long a lease lasts without a renewal

    async def acquire(self, session: str) -> Lease | None:
        """Acquire a session with a higher epoch than ever before. Return None while another live owner has it."""
        owner, now, is_alive = self._owner, self._clock.now(), self._is_alive
        return await self._writer.submit(
            lambda connection: sqlite_statements.acquire_lease(connection, session, owner, now, is_alive)
        )

    async def is_owned(self, session: str) -> bool:
        """Return whether a live process owns a session."""
        now, is_alive = self._clock.now(), self._is_alive
        return await self._writer.submit(
            lambda connection: sqlite_statements.is_session_owned(connection, session, now, is_alive)
        )

    async def renew(self) -> None:
        """Renew all leases of this process."""
        owner, expires_at = self._owner, self._clock.now() + self.seconds
        await self._writer.submit(lambda connection: sqlite_statements.renew_owner(connection, owner, expires_at))

    async def release(self, lease: Lease) -> None:
        """Release the lease. Does nothing if another process holds it."""
        await self._writer.submit(lambda connection: sqlite_statements.release_lease(connection, lease))

    async def register(self) -> None:
        """Register this process as alive, and delete the entries of expired processes."""
        now = self._clock.now()
        await self._writer.submit(lambda connection: sqlite_statements.delete_expired_owners(connection, now))
        await self.renew()

    async def release_all(self) -> None:
        """Release all leases of this process."""
        owner = self._owner
        await self._writer.submit(lambda connection: sqlite_statements.release_all_leases(connection, owner))


class ClosableBus(Bus, Protocol):
    """A bus that is closed with its store."""

    def close(self) -> None:
        """Disconnect from the bus."""
        ...


class SqliteStore:
    """Inbox, journal and leases of one process in one database. The search index is a separate file next to it."""

    def __init__(
        self,
        writer: Committer,
        reader: Committer,
        leases: SqliteLeases,
        bus: ClosableBus,
        search: SqliteSearch | None = None,
        *,
        close_seconds: float = CLOSE_SECONDS,
    ) -> None:
        """Create a store from existing services. `open` creates them for a file; a simulation passes its own."""
        self._writer = writer
        self._reader = reader
        self.search = search or SqliteSearch(reader)
        self.inbox = SqliteInbox(writer, reader)
        self.journal = SqliteJournal(writer, reader, self.search)
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
        """Open the database, creating or migrating it if necessary. `owner` names this process; never reuse the name.

        Raises:
            StoreUnusable: The database is damaged, newer, or belongs to another program. It was not changed.
            StoreError: The file or its directory can't be used.
        """
        async with AsyncExitStack() as on_failure:
            writer = CommitThread(lambda: connect(path))
            on_failure.push_async_callback(_close_committer, writer)
            await writer.submit(lambda _: None)  # the reader needs the tables that the writer creates
            reader = CommitThread(lambda: open_reader(path), begin_sql="BEGIN", max_batch=1)
            on_failure.push_async_callback(_close_committer, reader)
            bus = LocalBus(prepare_bus_directory(path.parent), owner)
            on_failure.callback(bus.close)
            leases = SqliteLeases(writer, owner, clock, bus.is_alive, lease_seconds)
            await leases.register()
            on_failure.pop_all()
            search = SqliteSearch(reader, path.with_name(INDEX_NAME))
            return cls(writer, reader, leases, bus, search, close_seconds=close_seconds)

    async def close(self) -> None:
        """Commit submitted operations, release all leases, and checkpoint the log. Takes at most `close_seconds`."""
        if self._is_closed:
            return
        self._is_closed = True
        with anyio.move_on_after(self._close_seconds, shield=True):
            # On a full or broken disk the leases remain, and expire after the process has ended.
            with suppress(StoreError):
                await self.leases.release_all()
            # The writer's connection is closed last, so it checkpoints the log into the file.
            await self._reader.close()
            await self._writer.close()
            await self.search.close()  # last, because an unfinished index update is simply repeated
        self.bus.close()


async def _close_committer(committer: Committer) -> None:
    with anyio.move_on_after(CLOSE_SECONDS, shield=True):
        await committer.close()
