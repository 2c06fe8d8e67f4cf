"""A file that can't be used is named with what to do about it, and keeps every byte."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hark.protocol.store import StoreError, StoreUnusable, Summary
from hark.store.database_file import APPLICATION_ID, CURRENT_VERSION, MIGRATIONS
from hark.store.sqlite import SqliteStore
from tests.store.store_fixtures import TestClock, owned, record, say


async def open_store(path: Path) -> SqliteStore:
    return await SqliteStore.open(path, "me", TestClock())


async def filled(path: Path) -> None:
    store = await open_store(path)
    lease = await owned(store)
    for n in range(50):
        await store.inbox.put("s", say(str(n), "words " * 100))
        await store.journal.append(lease, n, [record(str(n), "words " * 100)], Summary())
    await store.close()


async def refused(path: Path) -> str:
    """Return why the file can't be used, after checking that nothing in its directory was changed."""
    before = contents(path.parent)
    with pytest.raises(StoreUnusable) as caught:
        await open_store(path)
    assert contents(path.parent) == before
    assert str(path) in str(caught.value)
    assert "not changed" in str(caught.value)
    assert "move" in str(caught.value)
    return str(caught.value)


def contents(directory: Path) -> dict[str, bytes]:
    # The -shm file is SQLite's index of the log, made anew by whoever opens it.
    files = (file for file in directory.iterdir() if file.is_file() and not file.name.endswith("-shm"))
    return {file.name: file.read_bytes() for file in files}


def marks(path: Path) -> tuple[int, int]:
    with closing(sqlite3.connect(path)) as connection:
        [version] = connection.execute("PRAGMA user_version").fetchone()
        [application] = connection.execute("PRAGMA application_id").fetchone()
    return version, application


async def crashed(path: Path) -> None:
    """Leave a file as a killed process does: most of it in the log."""
    source = path.with_name("source.db")
    store = await open_store(source)
    await store.inbox.put("s", say("a"))
    shutil.copy(source, path)
    shutil.copy(source.with_name("source.db-wal"), path.with_name(path.name + "-wal"))
    await store.close()


async def test_a_new_file_gets_the_current_tables(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "in" / "hark.db"
    await filled(path)
    assert marks(path) == (CURRENT_VERSION, APPLICATION_ID)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"inbox", "journal", "sessions", "leases", "owners", "forgotten", "identity"}


@pytest.mark.parametrize("version", range(CURRENT_VERSION + 1))
async def test_a_file_of_any_older_version_is_migrated(tmp_path: Path, version: int) -> None:
    path = tmp_path / "hark.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in (statement for step in MIGRATIONS[:version] for statement in step):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID if version else 0}")
    await filled(path)
    assert marks(path) == (CURRENT_VERSION, APPLICATION_ID)
    store = await open_store(path)
    assert len(await store.inbox.after("s", 0)) == 50
    await store.close()


async def test_a_file_that_a_crash_left_with_a_log_is_opened(tmp_path: Path) -> None:
    await crashed(tmp_path / "hark.db")
    store = await open_store(tmp_path / "hark.db")
    assert [entry.command for entry in await store.inbox.after("s", 0)] == [say("a")]
    await store.close()


@pytest.mark.parametrize("has_log", [False, True])
async def test_a_newer_file_is_refused(tmp_path: Path, has_log: bool) -> None:
    path = tmp_path / "hark.db"
    await filled(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {CURRENT_VERSION + 1}")
        copies = contents(tmp_path) if has_log else {}
    for name, content in copies.items():
        (tmp_path / name).write_bytes(content)
    assert ("hark.db-wal" in contents(tmp_path)) == has_log
    why = await refused(path)
    assert "newer Hark" in why
    assert "Upgrade" in why


async def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "places.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE places (name)")
    assert "another program" in await refused(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1")
    assert "another program" in await refused(path)


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hark.db"
    path.write_bytes(b"Dear diary, " * 1000)
    assert "not a database" in await refused(path)


@pytest.mark.parametrize("kept", [50, 5000, -4096])
async def test_a_truncated_file_is_refused(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "hark.db"
    await filled(path)
    path.write_bytes(path.read_bytes()[:kept])
    why = await refused(path)
    assert "damaged" in why
    assert ("only 50 bytes" if kept == 50 else "should have") in why


async def test_an_empty_file_beside_a_full_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hark.db"
    await crashed(path)
    path.write_bytes(b"")
    assert "empty or missing" in await refused(path)
    path.unlink()
    assert "empty or missing" in await refused(path)


async def test_garbage_in_the_pages_beside_a_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hark.db"
    await filled(path)
    store = await open_store(path)
    await store.inbox.put("t", say("a"))
    content = bytearray(path.read_bytes())
    log = path.with_name("hark.db-wal").read_bytes()
    await store.close()
    content[8192:-4096] = b"\xa5" * (len(content) - 8192 - 4096)
    path.write_bytes(content)
    path.with_name("hark.db-wal").write_bytes(log)
    assert "damaged" in await refused(path)


async def test_garbage_that_is_met_later_is_named(tmp_path: Path) -> None:
    path = tmp_path / "hark.db"
    await filled(path)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle:] = b"\xa5" * (len(content) - middle)
    path.write_bytes(content)
    store = await open_store(path)
    with pytest.raises(StoreUnusable, match="damaged"):
        await store.journal.read("s")
    await store.close()


async def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="Check that its directory") as caught:
        await open_store(tmp_path / "file" / "hark.db")
    assert str(tmp_path / "file" / "hark.db") in str(caught.value)


async def test_a_directory_in_the_files_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "hark.db").mkdir()
    with pytest.raises(StoreError, match="Check that its directory"):
        await open_store(tmp_path / "hark.db")


async def test_a_new_database_is_nobody_elses_to_read(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "home" / "hark.db", "me", TestClock())
    await store.inbox.put("s", say("1"))
    modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "home").iterdir() if file.is_file()}
    await store.close()
    assert modes["hark.db"] == 0o600
    assert set(modes.values()) == {0o600}
