"""The schedule store: concurrent changes by several processes are not lost."""

import asyncio
import multiprocessing
from pathlib import Path

import pytest
from msgspec import structs

from hark.protocol.schedules import Schedule
from hark.protocol.store import StoreError
from hark.store.schedule_store import SqliteScheduleStore

CHANGES_PER_PROCESS = 20


def make_schedule(name: str) -> Schedule:
    return Schedule(name, "@daily", "0 0 * * *", "hello", "s", "UTC", 0.0)


async def test_added_changed_and_removed_schedules_are_visible_to_other_stores(tmp_path: Path) -> None:
    first, other = (SqliteScheduleStore(tmp_path / "home" / "schedules.db") for _ in range(2))
    assert await first.add(make_schedule("b"), 2) == ""
    assert await other.add(make_schedule("b"), 2) == "exists"
    assert await other.add(make_schedule("a"), 2) == ""
    assert await first.add(make_schedule("c"), 2) == "full"
    assert [found.name for found in await first.all()] == ["a", "b"]
    assert await other.change("a", lambda found: structs.replace(found, is_paused=True)) is not None
    assert await other.change("c", lambda found: found) is None
    assert (await first.all())[0].is_paused
    assert (await first.remove("a")) is not None
    assert (await first.remove("a")) is None
    assert [found.name for found in await other.all()] == ["b"]
    await first.close()
    await other.close()
    assert (tmp_path / "home" / "schedules.db").stat().st_mode & 0o777 == 0o600


async def _change_repeatedly(path: Path) -> None:
    store = SqliteScheduleStore(path)
    for _ in range(CHANGES_PER_PROCESS):
        await store.change("a", lambda found: structs.replace(found, since=found.since + 1))
    await store.close()


def change_repeatedly(path: Path) -> None:
    asyncio.run(_change_repeatedly(path))


async def test_changes_by_several_processes_are_all_applied(tmp_path: Path) -> None:
    path = tmp_path / "schedules.db"
    store = SqliteScheduleStore(path)
    await store.add(make_schedule("a"), 1)
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=change_repeatedly, args=(path,)) for _ in range(3)]
    for process in processes:
        process.start()
    await asyncio.gather(*(asyncio.to_thread(process.join) for process in processes))
    assert (await store.all())[0].since == 3 * CHANGES_PER_PROCESS
    await store.close()


async def test_a_file_that_is_not_a_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "schedules.db").write_text("nothing of the kind " * 100)
    store = SqliteScheduleStore(tmp_path / "schedules.db")
    with pytest.raises(StoreError, match=r"schedules\.db is damaged"):
        await store.all()
