"""The book of schedules: what several processes do to it at once, none of it is lost."""

import asyncio
import multiprocessing
from pathlib import Path

import pytest
from msgspec import structs

from hark.protocol.schedules import Schedule
from hark.protocol.store import StoreError
from hark.store.schedule_store import SqliteScheduleBook

EACH = 20


def schedule(name: str) -> Schedule:
    return Schedule(name, "@daily", "0 0 * * *", "hello", "s", "UTC", 0.0)


async def test_what_is_added_changed_and_removed_is_there_for_others(tmp_path: Path) -> None:
    one, other = (SqliteScheduleBook(tmp_path / "home" / "schedules.db") for _ in range(2))
    assert await one.add(schedule("b"), 2) == ""
    assert await other.add(schedule("b"), 2) == "exists"
    assert await other.add(schedule("a"), 2) == ""
    assert await one.add(schedule("c"), 2) == "full"
    assert [found.name for found in await one.all()] == ["a", "b"]
    assert await other.change("a", lambda found: structs.replace(found, is_paused=True)) is not None
    assert await other.change("c", lambda found: found) is None
    assert (await one.all())[0].is_paused
    assert (await one.remove("a")) is not None
    assert (await one.remove("a")) is None
    assert [found.name for found in await other.all()] == ["b"]
    await one.close()
    await other.close()
    assert (tmp_path / "home" / "schedules.db").stat().st_mode & 0o777 == 0o600


async def _count(path: Path) -> None:
    book = SqliteScheduleBook(path)
    for _ in range(EACH):
        await book.change("a", lambda found: structs.replace(found, since=found.since + 1))
    await book.close()


def count(path: Path) -> None:
    asyncio.run(_count(path))


async def test_changes_of_several_processes_all_count(tmp_path: Path) -> None:
    path = tmp_path / "schedules.db"
    book = SqliteScheduleBook(path)
    await book.add(schedule("a"), 1)
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=count, args=(path,)) for _ in range(3)]
    for process in processes:
        process.start()
    await asyncio.gather(*(asyncio.to_thread(process.join) for process in processes))
    assert (await book.all())[0].since == 3 * EACH
    await book.close()


async def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "schedules.db").write_text("nothing of the kind " * 100)
    book = SqliteScheduleBook(tmp_path / "schedules.db")
    with pytest.raises(StoreError, match=r"schedules\.db is damaged"):
        await book.all()
