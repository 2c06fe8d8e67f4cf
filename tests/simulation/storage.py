"""Simulated durable state: the logic of the real stores, with commits that take virtual time and can be lost."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar, cast

from hark.engine.session.router import HEARTBEAT_SECONDS
from hark.protocol.commands import Command
from hark.protocol.records import AnyRecord
from hark.protocol.store import (
    InboxEntry,
    Lease,
    PutResult,
    Search,
    SessionListEntry,
    SessionSummary,
    Store,
    StoreError,
)
from hark.store import sqlite_statements
from hark.store.commit_thread import PendingCommit, commit_batch, resolve_futures
from hark.store.database_file import migrate
from hark.store.memory import MemoryBus, MemoryStore, SharedMemory
from hark.store.sqlite import SqliteLeases, SqliteStore
from tests.simulation.network_link import NetworkLink

T = TypeVar("T")
LEASE_SECONDS = 5.0
POLL_SECONDS = 0.5  # from a heartbeat or wake-up to reading the inbox


class SimulatedDisk:
    """One machine's access to durable state. Operations are committed in order, in batches, after a delay.

    A machine that dies loses only its uncommitted operations.
    """

    def __init__(
        self,
        link: NetworkLink,
        commit: Callable[[Sequence[PendingCommit]], None],
        on_commit: Callable[[], None] | None = None,
    ) -> None:
        """Without `on_commit`, the disk is read-only and reads never fail."""
        self._link = link
        self._commit = commit
        self._on_commit = on_commit
        self._pending: list[PendingCommit] = []
        self._is_busy = False

    def submit(self, operation: Callable[[Any], T]) -> Awaitable[T]:
        pending = PendingCommit(operation, asyncio.get_running_loop().create_future())
        self._pending.append(pending)
        began = self._link.now()
        pending.future.add_done_callback(lambda _: self._link.store_spans.append((began, self._link.now())))
        if not self._is_busy:
            self._is_busy = True
            self._link.call_later(self._link.delay("commit"), self._commit_pending)
        return pending.future

    async def close(self) -> None:
        while self._pending:
            await self.submit(lambda _: None)

    def _commit_pending(self) -> None:
        jobs, self._pending = self._pending, []
        failure = self._link.next_error() if self._on_commit else None
        if failure is None:
            self._commit(jobs)
            if self._on_commit:
                self._on_commit()
        else:
            for job in jobs:
                job.error = failure
        self._link.call_later(self._link.delay("answer"), lambda: resolve_futures(jobs))
        self._is_busy = bool(self._pending)
        if self._is_busy:
            self._link.call_later(self._link.delay("commit"), self._commit_pending)


class SharedState(Protocol):
    """The durable state that all machines share and that outlives them."""

    def open(self, link: NetworkLink, on_commit: Callable[[], None]) -> Store:
        """Return a store for one machine. `on_commit` is called at the moment of each commit."""
        ...

    async def register(self, store: Store) -> None:
        """Register the machine as alive."""
        ...

    def records(self, session: str, after: int) -> list[AnyRecord]:
        """Read the journal without simulated delay."""
        ...

    def entries(self, session: str, after: int) -> list[InboxEntry]:
        """Read the inbox without simulated delay."""
        ...

    def owner(self, session: str) -> str:
        """Return the current owner of a session."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


class LossyBus:
    """A simulated bus whose wake-up signals may arrive late, twice or not at all."""

    def __init__(self, inner: MemoryBus, link: NetworkLink) -> None:
        self._inner = inner
        self._link = link

    async def wake(self, session: str) -> None:
        delays = [self._link.delay("wake") for _ in range(self._link.wake_count())]
        for delay in delays:
            self._link.call_later(delay, lambda: _run_without_waiting(self._inner.wake(session)))
        now = self._link.now()
        self._link.wake_spans.append((now, now + min([*delays, HEARTBEAT_SECONDS]) + POLL_SECONDS))

    def wakes(self) -> AsyncIterator[str]:
        return self._inner.wakes()

    def close(self) -> None:
        self._inner.close()


class SqlState:
    """The durable state behind the SQLite store: the real SQL on an in-memory database."""

    def __init__(self) -> None:
        self._memory = SharedMemory()
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        migrate(self._connection, "memory")

    def open(self, link: NetworkLink, on_commit: Callable[[], None]) -> Store:
        def commit(jobs: Sequence[PendingCommit]) -> None:
            commit_batch(self._connection, jobs, "BEGIN IMMEDIATE")

        writes, reads = SimulatedDisk(link, commit, on_commit), SimulatedDisk(link, commit)
        leases = SqliteLeases(writes, link.owner, link, link.is_alive, LEASE_SECONDS)
        return SqliteStore(writes, reads, leases, LossyBus(MemoryBus(self._memory, link.owner), link))

    async def register(self, store: Store) -> None:
        await cast("SqliteLeases", store.leases).register()

    def records(self, session: str, after: int) -> list[AnyRecord]:
        return sqlite_statements.read_journal(self._connection, session, after)

    def entries(self, session: str, after: int) -> list[InboxEntry]:
        return sqlite_statements.entries_after(self._connection, session, after)

    def close(self) -> None:
        self._connection.close()

    def owner(self, session: str) -> str:
        row = self._connection.execute("SELECT owner FROM leases WHERE session = ?", (session,)).fetchone()
        return str(row[0]) if row else ""


class MemoryState:
    """The durable state behind the in-memory store, with the same simulated delays."""

    def __init__(self) -> None:
        self._memory = SharedMemory()

    def open(self, link: NetworkLink, on_commit: Callable[[], None]) -> Store:
        return DelayedStore(MemoryStore(self._memory, link.owner, link, LEASE_SECONDS), link, on_commit)

    async def register(self, store: Store) -> None:
        await store.leases.renew()

    def records(self, session: str, after: int) -> list[AnyRecord]:
        stored = self._memory.sessions.get(session)
        return stored.records[after:] if stored else []

    def entries(self, session: str, after: int) -> list[InboxEntry]:
        stored = self._memory.sessions.get(session)
        return stored.entries[after:] if stored else []

    def close(self) -> None:
        pass

    def owner(self, session: str) -> str:
        lease = self._memory.leases.get(session)
        return lease.owner if lease else ""


class DelayedStore:
    """An in-memory store with a simulated disk. The store itself implements the inbox, journal and leases."""

    def __init__(self, inner: MemoryStore, link: NetworkLink, on_commit: Callable[[], None]) -> None:
        self._inner = inner
        self._writes = SimulatedDisk(link, _commit_in_memory, on_commit)
        self._reads = SimulatedDisk(link, _commit_in_memory)
        self._bus = LossyBus(inner.bus, link)

    @property
    def inbox(self) -> "DelayedStore":
        return self

    @property
    def journal(self) -> "DelayedStore":
        return self

    @property
    def search(self) -> Search:
        return self._inner.search

    @property
    def leases(self) -> "DelayedStore":
        return self

    @property
    def bus(self) -> LossyBus:
        return self._bus

    async def put(self, session: str, command: Command) -> PutResult:
        return await self._writes.submit(lambda _: _run_without_waiting(self._inner.inbox.put(session, command)))

    async def entries_after(self, session: str, seq: int) -> list[InboxEntry]:
        return await self._reads.submit(lambda _: _run_without_waiting(self._inner.inbox.entries_after(session, seq)))

    async def unread_sessions(self) -> list[str]:
        return await self._reads.submit(lambda _: _run_without_waiting(self._inner.inbox.unread_sessions()))

    async def unfinished_sessions(self) -> list[str]:
        return await self._reads.submit(lambda _: _run_without_waiting(self._inner.inbox.unfinished_sessions()))

    async def append(self, lease: Lease, expected: int, records: Sequence[AnyRecord], summary: SessionSummary) -> None:
        copy = tuple(records)
        await self._writes.submit(
            lambda _: _run_without_waiting(self._inner.journal.append(lease, expected, copy, summary))
        )

    async def read(self, session: str, after: int = 0) -> list[AnyRecord]:
        return await self._reads.submit(lambda _: _run_without_waiting(self._inner.journal.read(session, after)))

    async def sessions(self) -> list[SessionListEntry]:
        return await self._reads.submit(lambda _: _run_without_waiting(self._inner.journal.sessions()))

    async def delete(self, session: str) -> bool:
        return await self._writes.submit(lambda _: _run_without_waiting(self._inner.journal.delete(session)))

    @property
    def seconds(self) -> float:
        return self._inner.leases.seconds

    async def acquire(self, session: str) -> Lease | None:
        return await self._writes.submit(lambda _: _run_without_waiting(self._inner.leases.acquire(session)))

    async def is_owned(self, session: str) -> bool:
        return await self._reads.submit(lambda _: _run_without_waiting(self._inner.leases.is_owned(session)))

    async def renew(self) -> None:
        await self._writes.submit(lambda _: _run_without_waiting(self._inner.leases.renew()))

    async def release(self, lease: Lease) -> None:
        await self._writes.submit(lambda _: _run_without_waiting(self._inner.leases.release(lease)))

    async def close(self) -> None:
        with suppress(StoreError):
            await self._writes.submit(lambda _: _run_without_waiting(self._inner.close()))


def _commit_in_memory(jobs: Sequence[PendingCommit]) -> None:
    for job in jobs:
        try:
            job.result = job.operation(cast("sqlite3.Connection", None))
        except StoreError as refusal:
            job.error = refusal


def _run_without_waiting(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    raise AssertionError("the in-memory store waited")
