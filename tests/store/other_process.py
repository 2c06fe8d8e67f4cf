"""A second process on the same database that performs the named action and prints a line per acknowledgement."""

import asyncio
import sys
import time
from pathlib import Path

from hark.protocol.store import SessionSummary
from hark.store.sqlite import SqliteStore
from tests.store.store_fixtures import make_record, make_say


class WallClock:
    def now(self) -> float:
        return time.time()

    def new_id(self) -> str:
        return str(time.time_ns())


async def put_forever(store: SqliteStore) -> None:
    """Add commands to the inbox from many tasks at once, so that a kill hits a commit in progress."""

    async def put(task: int) -> None:
        number = 0
        while True:
            await store.inbox.put("s", make_say(f"{task}-{number}"))
            print(f"{task}-{number}", flush=True)
            number += 1

    await asyncio.gather(*(put(task) for task in range(8)))


async def put_200(store: SqliteStore, name: str) -> None:
    print("ready", flush=True)
    await asyncio.gather(*(store.inbox.put("s", make_say(f"{name}-{n}")) for n in range(200)))
    print("done", flush=True)


async def acquire_and_wait(store: SqliteStore) -> None:
    lease = await store.leases.acquire("s")
    assert lease is not None
    await store.journal.append(lease, 0, [make_record("a")], SessionSummary(is_open=True))
    print(lease.epoch, flush=True)
    await asyncio.Event().wait()


async def main(path: str, owner: str, action: str) -> None:
    store = await SqliteStore.open(Path(path), owner, WallClock(), lease_seconds=3600.0)
    if action == "put_forever":
        await put_forever(store)
    elif action == "put_200":
        await put_200(store, owner)
    else:
        await acquire_and_wait(store)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
