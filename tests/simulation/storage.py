"""What lasts in a simulated world: the real stores' logic, with commits that take virtual time and can be lost."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar, cast

from hark.engine.session.router import HEARTBEAT_SECONDS
from hark.protocol.commands import Command
from hark.protocol.records import AnyRecord
from hark.protocol.store import Accepted, Entry, Lease, Search, SessionLine, Store, StoreError, Summary
from hark.store import rows
from hark.store.committer import PendingCommit, answer, commit_together
from hark.store.database_file import migrate
from hark.store.memory import MemoryBus, MemoryStore, SharedMemory
from hark.store.sqlite import SqliteLeases, SqliteStore
from tests.simulation.network_link import Link

T = TypeVar("T")
LEASE_SECONDS = 5.0
LOOK_SECONDS = 0.5  # from a heartbeat or wake to the look at the inbox


class Disk:
    """One machine's way to what lasts: operations are committed together and in order, after a while.

    A machine that dies loses what was not committed, and nothing else.
    """

    def __init__(
        self, link: Link, commit: Callable[[Sequence[PendingCommit]], None], committed: Callable[[], None] | None = None
    ) -> None:
        """Without `committed` it only reads, and reading does not fail."""
        self._link = link
        self._commit = commit
        self._committed = committed
        self._waiting: list[PendingCommit] = []
        self._is_busy = False

    def submit(self, operation: Callable[[Any], T]) -> Awaitable[T]:
        job = PendingCommit(operation, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        began = self._link.now()
        job.future.add_done_callback(lambda _: self._link.store_time.append((began, self._link.now())))
        if not self._is_busy:
            self._is_busy = True
            self._link.later(self._link.delay("commit"), self._commit_waiting)
        return job.future

    async def close(self) -> None:
        while self._waiting:
            await self.submit(lambda _: None)

    def _commit_waiting(self) -> None:
        jobs, self._waiting = self._waiting, []
        failure = self._link.failure() if self._committed else None
        if failure is None:
            self._commit(jobs)
            if self._committed:
                self._committed()
        else:
            for job in jobs:
                job.error = failure
        self._link.later(self._link.delay("answer"), lambda: answer(jobs))
        self._is_busy = bool(self._waiting)
        if self._is_busy:
            self._link.later(self._link.delay("commit"), self._commit_waiting)


class Vault(Protocol):
    """What all machines share, whatever holds it; it outlives them."""

    def open(self, link: Link, committed: Callable[[], None]) -> Store:
        """Return one machine's store; `committed` is called in the moment of each of its commits."""
        ...

    async def enter(self, store: Store) -> None:
        """Say that the machine lives."""
        ...

    def records(self, session: str, after: int) -> list[AnyRecord]:
        """Look at the journal, without any delay."""
        ...

    def entries(self, session: str, after: int) -> list[Entry]:
        """Look at the inbox, without any delay."""
        ...

    def owner(self, session: str) -> str:
        """Return who owns a session in this moment."""
        ...

    def close(self) -> None:
        """Let go of what holds it."""
        ...


class LossyBus:
    """A bus whose wakes come late, twice or not at all."""

    def __init__(self, inner: MemoryBus, link: Link) -> None:
        self._inner = inner
        self._link = link

    async def wake(self, session: str) -> None:
        delays = [self._link.delay("wake") for _ in range(self._link.wakes())]
        for delay in delays:
            self._link.later(delay, lambda: _now(self._inner.wake(session)))
        now = self._link.now()
        self._link.wake_time.append((now, now + min([*delays, HEARTBEAT_SECONDS]) + LOOK_SECONDS))

    def wakes(self) -> AsyncIterator[str]:
        return self._inner.wakes()

    def close(self) -> None:
        self._inner.close()


class SqlVault:
    """The SQLite store's own SQL on a database in memory."""

    def __init__(self) -> None:
        self._memory = SharedMemory()
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        migrate(self._connection, "memory")

    def open(self, link: Link, committed: Callable[[], None]) -> Store:
        def commit(jobs: Sequence[PendingCommit]) -> None:
            commit_together(self._connection, jobs, "BEGIN IMMEDIATE")

        writes, reads = Disk(link, commit, committed), Disk(link, commit)
        leases = SqliteLeases(writes, link.owner, link, link.is_alive, LEASE_SECONDS)
        return SqliteStore(writes, reads, leases, LossyBus(MemoryBus(self._memory, link.owner), link))

    async def enter(self, store: Store) -> None:
        await cast("SqliteLeases", store.leases).enter()

    def records(self, session: str, after: int) -> list[AnyRecord]:
        return rows.read(self._connection, session, after)

    def entries(self, session: str, after: int) -> list[Entry]:
        return rows.after(self._connection, session, after)

    def close(self) -> None:
        self._connection.close()

    def owner(self, session: str) -> str:
        row = self._connection.execute("SELECT owner FROM leases WHERE session = ?", (session,)).fetchone()
        return str(row[0]) if row else ""


class MemoryVault:
    """The store in memory, with the same delays in front of it."""

    def __init__(self) -> None:
        self._memory = SharedMemory()

    def open(self, link: Link, committed: Callable[[], None]) -> Store:
        return DelayedStore(MemoryStore(self._memory, link.owner, link, LEASE_SECONDS), link, committed)

    async def enter(self, store: Store) -> None:
        await store.leases.renew()

    def records(self, session: str, after: int) -> list[AnyRecord]:
        kept = self._memory.kept.get(session)
        return kept.records[after:] if kept else []

    def entries(self, session: str, after: int) -> list[Entry]:
        kept = self._memory.kept.get(session)
        return kept.entries[after:] if kept else []

    def close(self) -> None:
        pass

    def owner(self, session: str) -> str:
        lease = self._memory.leases.get(session)
        return lease.owner if lease else ""


class DelayedStore:
    """A store in memory whose every act goes through a disk. It is its own inbox, journal and leases."""

    def __init__(self, inner: MemoryStore, link: Link, committed: Callable[[], None]) -> None:
        self._inner = inner
        self._writes = Disk(link, _commit_in_memory, committed)
        self._reads = Disk(link, _commit_in_memory)
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

    async def put(self, session: str, command: Command) -> Accepted:
        return await self._writes.submit(lambda _: _now(self._inner.inbox.put(session, command)))

    async def after(self, session: str, seq: int) -> list[Entry]:
        return await self._reads.submit(lambda _: _now(self._inner.inbox.after(session, seq)))

    async def unread(self) -> list[str]:
        return await self._reads.submit(lambda _: _now(self._inner.inbox.unread()))

    async def unfinished(self) -> list[str]:
        return await self._reads.submit(lambda _: _now(self._inner.inbox.unfinished()))

    async def append(self, lease: Lease, expected: int, records: Sequence[AnyRecord], summary: Summary) -> None:
        kept = tuple(records)
        await self._writes.submit(lambda _: _now(self._inner.journal.append(lease, expected, kept, summary)))

    async def read(self, session: str, after: int = 0) -> list[AnyRecord]:
        return await self._reads.submit(lambda _: _now(self._inner.journal.read(session, after)))

    async def sessions(self) -> list[SessionLine]:
        return await self._reads.submit(lambda _: _now(self._inner.journal.sessions()))

    async def delete(self, session: str) -> bool:
        return await self._writes.submit(lambda _: _now(self._inner.journal.delete(session)))

    @property
    def seconds(self) -> float:
        return self._inner.leases.seconds

    async def acquire(self, session: str) -> Lease | None:
        return await self._writes.submit(lambda _: _now(self._inner.leases.acquire(session)))

    async def is_owned(self, session: str) -> bool:
        return await self._reads.submit(lambda _: _now(self._inner.leases.is_owned(session)))

    async def renew(self) -> None:
        await self._writes.submit(lambda _: _now(self._inner.leases.renew()))

    async def release(self, lease: Lease) -> None:
        await self._writes.submit(lambda _: _now(self._inner.leases.release(lease)))

    async def close(self) -> None:
        with suppress(StoreError):
            await self._writes.submit(lambda _: _now(self._inner.close()))


def _commit_in_memory(jobs: Sequence[PendingCommit]) -> None:
    for job in jobs:
        try:
            job.result = job.operation(cast("sqlite3.Connection", None))
        except StoreError as refusal:
            job.error = refusal


def _now(act: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits."""
    try:
        act.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    raise AssertionError("a store in memory waited")
