"""The SQLite store on a database in memory, shared by any number of owners in one process: nothing of it lasts."""

import asyncio
import sqlite3
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from hark.protocol.clock import Clock
from hark.store import rows
from hark.store.committer import PendingCommit, answer, commit_together
from hark.store.database_file import migrate
from hark.store.local_bus import WakeQueue
from hark.store.sqlite import LEASE_SECONDS, SqliteLeases, SqliteStore

T = TypeVar("T")


class SharedMemory:
    """The database that several stores share, and its Committer: on the caller's own loop, at once."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self.connection.close)
        migrate(self.connection, "memory")
        self.wakes: dict[str, WakeQueue] = {}

    def submit(self, operation: Callable[[sqlite3.Connection], T]) -> Awaitable[T]:
        """Run an operation and commit it; the answer is there already."""
        job = PendingCommit(operation, asyncio.get_running_loop().create_future())
        commit_together(self.connection, [job], "BEGIN IMMEDIATE")
        answer([job])
        return job.future

    async def close(self) -> None:
        """Nothing waits to be finished, and others may share the database."""


class MemoryBus:
    """One owner's ear on the bus."""

    def __init__(self, memory: SharedMemory, owner: str) -> None:
        self._owner = owner
        self._all = memory.wakes
        self._mine = self._all[owner] = WakeQueue()

    async def wake(self, session: str) -> None:
        """Tell the other owners that a session has something new."""
        for owner, wakes in self._all.items():
            if owner != self._owner:
                wakes.add(session)

    def wakes(self) -> AsyncIterator[str]:
        """Yield the sessions that others woke; "" means: look at all. Ends when the bus is closed."""
        return aiter(self._mine)

    def close(self) -> None:
        """Leave the bus."""
        self._all.pop(self._owner, None)
        self._mine.close()


class MemoryStore(SqliteStore):
    """One owner's view of a memory."""

    def __init__(self, memory: SharedMemory, owner: str, clock: Clock, lease_seconds: float = LEASE_SECONDS) -> None:
        leases = SqliteLeases(memory, owner, clock, lambda _: True, lease_seconds)
        super().__init__(memory, memory, leases, MemoryBus(memory, owner))
        rows.beat(memory.connection, owner, clock.now() + lease_seconds)
