"""What lasts in a simulated world: the real store's logic, with commits that take virtual time and can be lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar, cast

from hark.engine.session.router import HEARTBEAT_SECONDS
from hark.protocol.records import AnyRecord
from hark.protocol.store import Entry
from hark.store import rows
from hark.store.committer import PendingCommit, answer, commit_together
from hark.store.memory import MemoryBus, SharedMemory
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


class Vault:
    """What all machines share: the SQLite store's own SQL on a database in memory. It outlives them."""

    def __init__(self, *, sees_deaths: bool) -> None:
        """A machine that died loses its leases at once if the others see it, and else when they run out."""
        self._memory = SharedMemory()
        self._sees_deaths = sees_deaths

    def open(self, link: Link, committed: Callable[[], None]) -> SqliteStore:
        """Return one machine's store; `committed` is called in the moment of each of its commits."""

        def commit(jobs: Sequence[PendingCommit]) -> None:
            commit_together(self._memory.connection, jobs, "BEGIN IMMEDIATE")

        writes, reads = Disk(link, commit, committed), Disk(link, commit)
        is_alive: Callable[[str], bool] = link.is_alive if self._sees_deaths else lambda _: True
        leases = SqliteLeases(writes, link.owner, link, is_alive, LEASE_SECONDS)
        return SqliteStore(writes, reads, leases, LossyBus(MemoryBus(self._memory, link.owner), link))

    def records(self, session: str, after: int) -> list[AnyRecord]:
        """Look at the journal, without any delay."""
        return rows.read(self._memory.connection, session, after)

    def entries(self, session: str, after: int) -> list[Entry]:
        """Look at the inbox, without any delay."""
        return rows.after(self._memory.connection, session, after)

    def owner(self, session: str) -> str:
        """Return who owns a session in this moment."""
        query = "SELECT owner FROM leases WHERE session = ?"
        row = self._memory.connection.execute(query, (session,)).fetchone()
        return str(row[0]) if row else ""


def _now(act: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits."""
    try:
        act.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    raise AssertionError("a store in memory waited")
