"""The search index file: created on demand, rebuilt when broken, and never a cause of delay for turns."""

import asyncio
import shutil
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from hark.protocol.store import SearchQuery, SessionSummary, Store, StoreError
from hark.store import sqlite_search, sqlite_statements
from hark.store.sqlite import SqliteStore
from hark.store.sqlite_search import SqliteSearch
from tests.store.store_fixtures import TestClock, acquire_lease, list_names
from tests.store.test_search import append_records, find_snippets, make_user_record
from tests.waiting import at_most

MESSAGE_COUNT = 4_000


@asynccontextmanager
async def open_store(directory: Path, owner: str = "me", **options: float) -> AsyncGenerator[SqliteStore]:
    store = await SqliteStore.open(directory / "hark.db", owner, TestClock(), **options)
    try:
        yield store
    finally:
        await store.close()


async def append_many(store: Store, count: int = MESSAGE_COUNT) -> None:
    await append_records(
        store,
        *(make_user_record(f"item {number} of a long list of many words", f"s.t{number}") for number in range(count)),
    )


def pause_after_first_batch(monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, threading.Event]:
    """Return an event that is set when the first batch is indexed, and one that lets the other batches be indexed."""
    loop, started, apply_batch = asyncio.get_running_loop(), asyncio.Event(), sqlite_search.apply_batch
    resume = threading.Event()

    def apply_and_notify(
        index: sqlite3.Connection, position: sqlite_search.IndexPosition, batch: sqlite_search.IndexBatch
    ) -> None:
        if started.is_set():
            resume.wait()
        apply_batch(index, position, batch)
        if batch.messages:
            loop.call_soon_threadsafe(started.set)

    monkeypatch.setattr(sqlite_search, "apply_batch", apply_and_notify)
    return started, resume


def count_indexed(directory: Path) -> int:
    with closing(sqlite3.connect(directory / "search.db")) as index:
        return index.execute("SELECT count(*) FROM lines").fetchone()[0]


async def test_the_index_and_its_thread_are_created_by_the_first_search(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        threads = threading.active_count()
        await append_records(store, make_user_record("teal"))
        await store.journal.delete("other")
        assert threading.active_count() == threads
        assert not (tmp_path / "search.db").exists()
        assert await find_snippets(store, "teal") == ["teal"]
        assert (tmp_path / "search.db").stat().st_mode & 0o777 == 0o600
    assert threading.active_count() == threads - 2
    assert list_names(tmp_path) == ["hark.db", "run", "search.db"]


async def test_a_new_process_resumes_indexing_where_the_last_one_stopped(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        await append_records(store, make_user_record("first teal"))
        await find_snippets(store, "teal")
    async with open_store(tmp_path) as store:
        await append_records(store, make_user_record("second teal", "s.t2"))
        assert await find_snippets(store, "teal") == ["second teal", "first teal"]
    assert count_indexed(tmp_path) == 2


@pytest.mark.parametrize("damage", ["garbage", "version", "middle", "missing"])
async def test_an_unusable_index_is_rebuilt(tmp_path: Path, damage: str) -> None:
    async with open_store(tmp_path) as store:
        await append_many(store, 300)
        assert await find_snippets(store, "299")
    index = tmp_path / "search.db"
    match damage:
        case "garbage":
            index.write_bytes(b"this is not a database at all" * 400)
        case "version":
            with closing(sqlite3.connect(index)) as connection:
                connection.execute("PRAGMA user_version = 99")
        case "middle":
            content = index.read_bytes()
            index.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
        case _:
            index.unlink()
    async with open_store(tmp_path) as store:
        assert await find_snippets(store, "item 299") == ["item 299 of a long list of many words"]
        assert len(await find_snippets(store, "long list", limit=1000)) == 300


async def test_an_index_built_for_another_database_is_rebuilt(tmp_path: Path) -> None:
    async with open_store(tmp_path / "one") as store:
        await append_records(store, make_user_record("of the one"), make_user_record("of the one too", "s.t2"))
        await find_snippets(store, "one")
    async with open_store(tmp_path / "other") as store:
        await append_records(store, make_user_record("of the other"))
    shutil.copy(tmp_path / "one" / "search.db", tmp_path / "other" / "search.db")
    async with open_store(tmp_path / "other") as store:
        assert await find_snippets(store, "of the") == ["of the other"]


async def test_the_index_is_rebuilt_when_an_older_database_is_restored(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        await append_records(store, make_user_record("old teal"))
    shutil.copy(tmp_path / "hark.db", tmp_path / "backup")
    async with open_store(tmp_path) as store:
        await append_records(store, make_user_record("lost teal", "s.t2"))
        assert len(await find_snippets(store, "teal")) == 2
    shutil.copy(tmp_path / "backup", tmp_path / "hark.db")
    async with open_store(tmp_path) as store:
        assert await find_snippets(store, "teal") == ["old teal"]


async def test_messages_of_a_deleted_session_are_removed_from_the_index_immediately(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        await append_records(store, make_user_record("the unforgettable"), session="a")
        await append_records(store, make_user_record("the rest"), session="b")
        await find_snippets(store, "the")
        await store.journal.delete("a")
    assert count_indexed(tmp_path) == 1
    async with open_store(tmp_path) as store:
        assert await find_snippets(store, "unforgettable") == []
        assert await find_snippets(store, "the") == ["the rest"]


async def test_a_long_session_is_deleted_from_the_index_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_search, "MAX_DELETED_MESSAGES", 100)
    async with open_store(tmp_path) as store:
        await append_records(store, make_user_record("a word that stays"), session="other")
        await append_many(store, 250)
        assert len(await find_snippets(store, "item", limit=1000)) == 250
        await store.journal.delete("s")
        assert count_indexed(tmp_path) == 1
        assert await find_snippets(store, "item") == []
        assert await find_snippets(store, "word") == ["a word that stays"]


async def test_deletions_between_searches_are_applied_by_the_next_search(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        for name in ("a", "b", "c"):
            await append_records(store, make_user_record(f"teal {name}"), session=name)
        await find_snippets(store, "teal")
        connection = sqlite3.connect(tmp_path / "hark.db", isolation_level=None)
        with closing(connection):  # like a process that dies before it updates the index
            sqlite_statements.delete_session(connection, "c")
            sqlite_statements.delete_session(connection, "b")
        await append_records(store, make_user_record("teal new"), make_user_record("teal newer", "s.t2"), session="b")
        assert await find_snippets(store, "teal") == ["teal newer", "teal new", "teal a"]


async def test_an_unreadable_record_does_not_hide_other_records(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        await append_records(
            store, make_user_record("teal one"), make_user_record("teal two"), make_user_record("teal three")
        )
        with closing(sqlite3.connect(tmp_path / "hark.db", isolation_level=None)) as connection:
            connection.execute("UPDATE journal SET body = x'ff' WHERE seq = 2")
        assert await find_snippets(store, "teal") == ["teal three", "teal one"]


async def test_two_processes_that_index_concurrently_index_each_message_once(tmp_path: Path) -> None:
    async with open_store(tmp_path) as one, open_store(tmp_path, "other") as other:
        await append_many(one, 1000)
        hits = await asyncio.gather(*(find_snippets(store, "item", limit=5000) for store in (one, other, one, other)))
        assert [len(snippets) for snippets in hits] == [1000] * 4
    assert count_indexed(tmp_path) == 1000


async def test_a_cancelled_search_ends_immediately_and_the_next_search_resumes_indexing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(tmp_path) as store:
        await append_many(store)
        started, resume = pause_after_first_batch(monkeypatch)
        search = asyncio.ensure_future(find_snippets(store, "item"))
        await started.wait()
        started_at = time.monotonic()
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search
        assert time.monotonic() - started_at < at_most(0.2)
        assert count_indexed(tmp_path) < MESSAGE_COUNT
        resume.set()
        assert await find_snippets(store, f"item {MESSAGE_COUNT - 1}")
    assert count_indexed(tmp_path) == MESSAGE_COUNT


async def test_close_does_not_wait_for_the_rest_of_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_store(tmp_path) as store:
        await append_many(store)
        started, resume = pause_after_first_batch(monkeypatch)
        search = asyncio.ensure_future(find_snippets(store, "item"))
        close = SqliteSearch.close

        async def close_and_resume(search: SqliteSearch) -> None:
            resume.set()
            await close(search)

        monkeypatch.setattr(SqliteSearch, "close", close_and_resume)
        await started.wait()
        started_at = time.monotonic()
        await store.close()
        assert time.monotonic() - started_at < at_most(1.0)
        with pytest.raises(StoreError, match="closed"):
            await search
    assert count_indexed(tmp_path) < MESSAGE_COUNT
    async with open_store(tmp_path) as store:
        assert len(await find_snippets(store, "item", limit=MESSAGE_COUNT + 1)) == MESSAGE_COUNT


async def test_appends_do_not_wait_for_a_blocked_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unblock = threading.Event()
    async with open_store(tmp_path, close_seconds=0.2) as store:
        await append_records(store, make_user_record("teal"))
        await find_snippets(store, "teal")
        loop, reached = asyncio.get_running_loop(), asyncio.Event()

        def blocked(*_: object) -> list[object]:
            loop.call_soon_threadsafe(reached.set)
            unblock.wait()
            return []

        monkeypatch.setattr(sqlite_search, "find_messages", blocked)
        search = asyncio.ensure_future(store.search.find(SearchQuery("teal")))
        await reached.wait()
        lease = await acquire_lease(store, "t")
        started_at = time.monotonic()
        for number in range(10):
            await store.journal.append(lease, number, [make_user_record("more", f"t.t{number}")], SessionSummary())
        seconds_per_append = (time.monotonic() - started_at) / 10
        assert seconds_per_append < at_most(0.05)
        search.cancel()
        started_at = time.monotonic()
        await store.close()
        assert time.monotonic() - started_at < at_most(1.0)
    unblock.set()
