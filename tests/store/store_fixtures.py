"""Helpers for the store tests: a manual clock, and environments in which several owners share a store."""

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
    """A fake clock that changes only when a test sets its time."""

    __test__ = False

    def __init__(self) -> None:
        self.time = 1000.0
        self.id_count = 0

    def now(self) -> float:
        return self.time

    def new_id(self) -> str:
        self.id_count += 1
        return f"id-{self.id_count}"


class StoreEnvironment(Protocol):
    """An environment in which several owners open stores that share their contents."""

    clock: TestClock

    async def open(self, owner: str) -> Store: ...

    async def close(self) -> None: ...


class MemoryEnvironment:
    def __init__(self, directory: Path) -> None:
        self.clock = TestClock()
        self._memory = SharedMemory()

    async def open(self, owner: str) -> Store:
        return MemoryStore(self._memory, owner, self.clock)

    async def close(self) -> None:
        pass


class FileEnvironment:
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


class InlineEnvironment:
    """The SQL store without threads, on the caller's event loop, as in simulations."""

    def __init__(self, directory: Path) -> None:
        self.clock = TestClock()
        self._memory = SharedMemory()
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        migrate(self._connection, "memory")

    async def open(self, owner: str) -> Store:
        committer = InlineCommitter(self._connection)
        leases = SqliteLeases(committer, owner, self.clock, lambda _: True, 10.0)
        await leases.register()
        return SqliteStore(committer, committer, leases, MemoryBus(self._memory, owner))

    async def close(self) -> None:
        self._connection.close()


ENVIRONMENTS: list[Callable[[Path], StoreEnvironment]] = [MemoryEnvironment, FileEnvironment, InlineEnvironment]


@asynccontextmanager
async def open_store(environment: StoreEnvironment) -> AsyncGenerator[Store]:
    """Open a store as owner `me`, and close the environment afterwards."""
    try:
        store = await environment.open("me")
        yield store
        await store.close()
    finally:
        await environment.close()


async def acquire_lease(store: Store, session: str = "s") -> Lease:
    lease = await store.leases.acquire(session)
    assert lease is not None
    return lease


async def wait_for_wake(bus: Bus) -> str:
    return await anext(bus.wakes())


def make_record(name: str, text: str = "hello") -> Queued:
    return Queued(message=UserMessage(name, text), delivery=Delivery.QUEUE, at=1.0)


def make_say(name: str, text: str = "hello") -> Say:
    return Say(name, text)


def list_names(directory: Path) -> list[str]:
    return sorted(file.name for file in directory.iterdir())
