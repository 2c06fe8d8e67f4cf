"""What the tests of the stores share: a clock in their hand, and places where several owners open one store."""

import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from hark.protocol.commands import Delivery, Say
from hark.protocol.messages import UserMessage
from hark.protocol.records import Queued
from hark.protocol.store import Bus, Lease, Store
from hark.store.database_file import migrate
from hark.store.memory import MemoryBus, MemoryStore, SharedMemory
from hark.store.sqlite import SqliteLeases, SqliteStore
from tests.store.inline_committer import InlineCommitter


class TestClock:
    """A clock that moves when it is told to."""

    __test__ = False

    def __init__(self) -> None:
        self.time = 1000.0
        self.names = 0

    def now(self) -> float:
        return self.time

    def new_id(self) -> str:
        self.names += 1
        return f"id-{self.names}"


class World(Protocol):
    """A place where owners open stores that share all they keep."""

    clock: TestClock

    async def open(self, owner: str) -> Store: ...

    async def close(self) -> None: ...


class MemoryWorld:
    def __init__(self, directory: Path) -> None:
        self.clock = TestClock()
        self._memory = SharedMemory()

    async def open(self, owner: str) -> Store:
        return MemoryStore(self._memory, owner, self.clock)

    async def close(self) -> None:
        pass


class FileWorld:
    def __init__(self, directory: Path) -> None:
        self.clock = TestClock()
        self._path = directory / "hark.db"
        self._stores: list[SqliteStore] = []

    async def open(self, owner: str) -> Store:
        store = await SqliteStore.open(self._path, owner, self.clock)
        self._stores.append(store)
        return store

    async def close(self) -> None:
        for store in self._stores:
            await store.close()


class InlineWorld:
    """The SQL of the file, on the caller's loop: what a simulation uses."""

    def __init__(self, directory: Path) -> None:
        self.clock = TestClock()
        self._memory = SharedMemory()
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        migrate(self._connection, "memory")

    async def open(self, owner: str) -> Store:
        committer = InlineCommitter(self._connection)
        leases = SqliteLeases(committer, owner, self.clock, lambda _: True, 10.0)
        await leases.enter()
        return SqliteStore(committer, committer, leases, MemoryBus(self._memory, owner))

    async def close(self) -> None:
        self._connection.close()


WORLDS: list[Callable[[Path], World]] = [MemoryWorld, FileWorld, InlineWorld]


@asynccontextmanager
async def opened(world: World) -> AsyncGenerator[Store]:
    """Open a store as `me`, and close the world behind it."""
    try:
        store = await world.open("me")
        yield store
        await store.close()
    finally:
        await world.close()


async def owned(store: Store, session: str = "s") -> Lease:
    lease = await store.leases.acquire(session)
    assert lease is not None
    return lease


async def next_wake(bus: Bus) -> str:
    return await anext(bus.wakes())


def record(name: str, text: str = "hello") -> Queued:
    return Queued(message=UserMessage(name, text), delivery=Delivery.QUEUE, at=1.0)


def say(name: str, text: str = "hello") -> Say:
    return Say(name, text)


def names_in(directory: Path) -> list[str]:
    return sorted(file.name for file in directory.iterdir())
