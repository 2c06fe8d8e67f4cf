"""Another process on the same database: does what its words say, and tells each thing that was acknowledged."""

import asyncio
import sys
import time
from pathlib import Path

from hark.protocol.store import Summary
from hark.store.sqlite import SqliteStore
from tests.store.store_fixtures import record, say


class WallClock:
    def now(self) -> float:
        return time.time()

    def new_id(self) -> str:
        return str(time.time_ns())


async def put_for_ever(store: SqliteStore) -> None:
    """Put from many tasks at once, so that a kill meets a commit under way."""

    async def put(task: int) -> None:
        n = 0
        while True:
            await store.inbox.put("s", say(f"{task}-{n}"))
            print(f"{task}-{n}", flush=True)
            n += 1

    await asyncio.gather(*(put(task) for task in range(8)))


async def put_some(store: SqliteStore, name: str) -> None:
    print("ready", flush=True)
    await asyncio.gather(*(store.inbox.put("s", say(f"{name}-{n}")) for n in range(200)))
    print("done", flush=True)


async def hold(store: SqliteStore) -> None:
    lease = await store.leases.acquire("s")
    assert lease is not None
    await store.journal.append(lease, 0, [record("a")], Summary(is_open=True))
    print(lease.epoch, flush=True)
    await asyncio.Event().wait()


async def main(path: str, owner: str, act: str) -> None:
    store = await SqliteStore.open(Path(path), owner, WallClock(), lease_seconds=3600.0)
    if act == "put_for_ever":
        await put_for_ever(store)
    elif act == "put_some":
        await put_some(store, owner)
    else:
        await hold(store)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
