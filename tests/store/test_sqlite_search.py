"""The search index in a file: made when it is needed, made again when it is broken, in nobody's way."""

import asyncio
import shutil
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from hark.protocol.store import Query, Store, StoreError, Summary
from hark.store import rows, sqlite_search
from hark.store.sqlite import SqliteStore
from tests.store.store_fixtures import TestClock, names_in, owned
from tests.store.test_search import asked, found, told
from tests.waiting import at_most

MANY = 4_000


@asynccontextmanager
async def opened(directory: Path, owner: str = "me", **options: float) -> AsyncGenerator[SqliteStore]:
    store = await SqliteStore.open(directory / "hark.db", owner, TestClock(), **options)
    try:
        yield store
    finally:
        await store.close()


async def told_many(store: Store, count: int = MANY) -> None:
    await told(
        store, *(asked(f"item {number} of a long list of many words", f"s.t{number}") for number in range(count))
    )


def first_piece_kept(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Return an event for the moment when the index has begun, and has much before it."""
    loop, begun, keep = asyncio.get_running_loop(), asyncio.Event(), sqlite_search.keep

    def keep_and_tell(index: sqlite3.Connection, mark: sqlite_search.Mark, piece: sqlite_search.IndexBatch) -> None:
        keep(index, mark, piece)
        if piece.lines:
            loop.call_soon_threadsafe(begun.set)

    monkeypatch.setattr(sqlite_search, "keep", keep_and_tell)
    return begun


def indexed(directory: Path) -> int:
    with closing(sqlite3.connect(directory / "search.db")) as index:
        return index.execute("SELECT count(*) FROM lines").fetchone()[0]


async def test_there_is_no_index_and_no_thread_until_somebody_searches(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        threads = threading.active_count()
        await told(store, asked("teal"))
        await store.journal.delete("other")
        assert threading.active_count() == threads
        assert not (tmp_path / "search.db").exists()
        assert await found(store, "teal") == ["teal"]
        assert (tmp_path / "search.db").stat().st_mode & 0o777 == 0o600
    assert threading.active_count() == threads - 2
    assert names_in(tmp_path) == ["hark.db", "run", "search.db"]


async def test_a_new_process_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await told(store, asked("first teal"))
        await found(store, "teal")
    async with opened(tmp_path) as store:
        await told(store, asked("second teal", "s.t2"))
        assert await found(store, "teal") == ["second teal", "first teal"]
    assert indexed(tmp_path) == 2


@pytest.mark.parametrize("damage", ["garbage", "version", "middle", "missing"])
async def test_an_index_that_cannot_be_used_is_made_again(tmp_path: Path, damage: str) -> None:
    async with opened(tmp_path) as store:
        await told_many(store, 300)
        assert await found(store, "299")
    index = tmp_path / "search.db"
    match damage:
        case "garbage":
            index.write_bytes(b"this is no database at all" * 400)
        case "version":
            with closing(sqlite3.connect(index)) as connection:
                connection.execute("PRAGMA user_version = 99")
        case "middle":
            whole = index.read_bytes()
            index.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
        case _:
            index.unlink()
    async with opened(tmp_path) as store:
        assert await found(store, "item 299") == ["item 299 of a long list of many words"]
        assert len(await found(store, "long list", limit=1000)) == 300


async def test_an_index_of_another_database_is_not_believed(tmp_path: Path) -> None:
    async with opened(tmp_path / "one") as store:
        await told(store, asked("of the one"), asked("of the one too", "s.t2"))
        await found(store, "one")
    async with opened(tmp_path / "other") as store:
        await told(store, asked("of the other"))
    shutil.copy(tmp_path / "one" / "search.db", tmp_path / "other" / "search.db")
    async with opened(tmp_path / "other") as store:
        assert await found(store, "of the") == ["of the other"]


async def test_an_older_copy_of_the_database_that_was_put_back_is_what_counts(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await told(store, asked("old teal"))
    shutil.copy(tmp_path / "hark.db", tmp_path / "backup")
    async with opened(tmp_path) as store:
        await told(store, asked("lost teal", "s.t2"))
        assert len(await found(store, "teal")) == 2
    shutil.copy(tmp_path / "backup", tmp_path / "hark.db")
    async with opened(tmp_path) as store:
        assert await found(store, "teal") == ["old teal"]


async def test_the_words_of_a_deleted_session_leave_the_file_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await told(store, asked("the unforgettable"), session="a")
        await told(store, asked("the rest"), session="b")
        await found(store, "the")
        await store.journal.delete("a")
    assert indexed(tmp_path) == 1
    async with opened(tmp_path) as store:
        assert await found(store, "unforgettable") == []
        assert await found(store, "the") == ["the rest"]


async def test_a_long_session_is_forgotten_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_search, "FORGOTTEN_LINES", 100)
    async with opened(tmp_path) as store:
        await told(store, asked("a word that stays"), session="other")
        await told_many(store, 250)
        assert len(await found(store, "item", limit=1000)) == 250
        await store.journal.delete("s")
        assert indexed(tmp_path) == 1
        assert await found(store, "item") == []
        assert await found(store, "word") == ["a word that stays"]


async def test_deletions_while_nobody_searched_are_caught_up_with(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        for name in ("a", "b", "c"):
            await told(store, asked(f"teal {name}"), session=name)
        await found(store, "teal")
        connection = sqlite3.connect(tmp_path / "hark.db", isolation_level=None)
        with closing(connection):  # as a process does that dies before it told the index
            rows.delete(connection, "c")
            rows.delete(connection, "b")
        await told(store, asked("teal new"), asked("teal newer", "s.t2"), session="b")
        assert await found(store, "teal") == ["teal newer", "teal new", "teal a"]


async def test_a_record_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await told(store, asked("teal one"), asked("teal two"), asked("teal three"))
        with closing(sqlite3.connect(tmp_path / "hark.db", isolation_level=None)) as connection:
            connection.execute("UPDATE journal SET body = x'ff' WHERE seq = 2")
        assert await found(store, "teal") == ["teal three", "teal one"]


async def test_two_processes_that_index_at_once_index_everything_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as one, opened(tmp_path, "other") as other:
        await told_many(one, 1000)
        hits = await asyncio.gather(*(found(store, "item", limit=5000) for store in (one, other, one, other)))
        assert [len(snippets) for snippets in hits] == [1000] * 4
    assert indexed(tmp_path) == 1000


async def test_a_cancelled_search_ends_at_once_and_the_next_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as store:
        await told_many(store)
        begun = first_piece_kept(monkeypatch)
        search = asyncio.ensure_future(found(store, "item"))
        await begun.wait()
        began = time.monotonic()
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search
        assert time.monotonic() - began < at_most(0.2)
        assert indexed(tmp_path) < MANY
        assert await found(store, f"item {MANY - 1}")
    assert indexed(tmp_path) == MANY


async def test_a_close_does_not_wait_for_the_rest_of_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path) as store:
        await told_many(store)
        begun = first_piece_kept(monkeypatch)
        search = asyncio.ensure_future(found(store, "item"))
        await begun.wait()
        began = time.monotonic()
        await store.close()
        assert time.monotonic() - began < at_most(1.0)
        with pytest.raises(StoreError, match="closed"):
            await search
    assert indexed(tmp_path) < MANY
    async with opened(tmp_path) as store:
        assert len(await found(store, "item", limit=MANY + 1)) == MANY


async def test_appends_do_not_wait_for_a_wedged_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    async with opened(tmp_path, close_seconds=0.2) as store:
        await told(store, asked("teal"))
        await found(store, "teal")
        loop, reached = asyncio.get_running_loop(), asyncio.Event()

        def wedged(*_: object) -> list[object]:
            loop.call_soon_threadsafe(reached.set)
            gate.wait()
            return []

        monkeypatch.setattr(sqlite_search, "find", wedged)
        search = asyncio.ensure_future(store.search.find(Query("teal")))
        await reached.wait()
        lease = await owned(store, "t")
        began = time.monotonic()
        for number in range(10):
            await store.journal.append(lease, number, [asked("more", f"t.t{number}")], Summary())
        each = (time.monotonic() - began) / 10
        assert each < at_most(0.05)
        search.cancel()
        began = time.monotonic()
        await store.close()
        assert time.monotonic() - began < at_most(1.0)
    gate.set()
