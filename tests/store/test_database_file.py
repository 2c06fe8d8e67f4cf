"""An unusable database file is reported with advice and left unchanged."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hark.protocol.store import SessionSummary, StoreError, StoreUnusable
from hark.store.database_file import APPLICATION_ID, CURRENT_VERSION, MIGRATIONS
from hark.store.sqlite import SqliteStore
from tests.store.store_fixtures import TestClock, acquire_lease, make_record, make_say


async def open_store(path: Path) -> SqliteStore:
    return await SqliteStore.open(path, "me", TestClock())


async def fill_store(path: Path) -> None:
    store = await open_store(path)
    lease = await acquire_lease(store)
    for n in range(50):
        await store.inbox.put("s", make_say(str(n), "words " * 100))
        await store.journal.append(lease, n, [make_record(str(n), "words " * 100)], SessionSummary())
    await store.close()


async def open_expecting_refusal(path: Path) -> str:
    """Return the reason why the file was refused, after checking that no file in its directory was changed."""
    before = read_files(path.parent)
    with pytest.raises(StoreUnusable) as caught:
        await open_store(path)
    assert read_files(path.parent) == before
    assert str(path) in str(caught.value)
    assert "not changed" in str(caught.value)
    assert "move" in str(caught.value)
    return str(caught.value)


def read_files(directory: Path) -> dict[str, bytes]:
    # SQLite rebuilds the -shm file, its index of the log, at each opening.
    files = (file for file in directory.iterdir() if file.is_file() and not file.name.endswith("-shm"))
    return {file.name: file.read_bytes() for file in files}


def read_version_and_application(path: Path) -> tuple[int, int]:
    with closing(sqlite3.connect(path)) as connection:
        [version] = connection.execute("PRAGMA user_version").fetchone()
        [application_id] = connection.execute("PRAGMA application_id").fetchone()
    return version, application_id


async def leave_crashed_store(path: Path) -> None:
    """Create the files that a killed process leaves, with most of the data in the write-ahead log."""
    source = path.with_name("source.db")
    store = await open_store(source)
    await store.inbox.put("s", make_say("a"))
    shutil.copy(source, path)
    shutil.copy(source.with_name("source.db-wal"), path.with_name(path.name + "-wal"))
    await store.close()


async def test_a_new_database_gets_the_current_schema(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "in" / "hark.db"
    await fill_store(path)
    assert read_version_and_application(path) == (CURRENT_VERSION, APPLICATION_ID)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"inbox", "journal", "sessions", "leases", "owners", "forgotten", "identity"}


@pytest.mark.parametrize("version", range(CURRENT_VERSION + 1))
async def test_a_database_from_any_older_version_is_migrated(tmp_path: Path, version: int) -> None:
    path = tmp_path / "hark.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in (statement for step in MIGRATIONS[:version] for statement in step):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID if version else 0}")
    await fill_store(path)
    assert read_version_and_application(path) == (CURRENT_VERSION, APPLICATION_ID)
    store = await open_store(path)
    assert len(await store.inbox.entries_after("s", 0)) == 50
    await store.close()


async def test_a_database_with_a_write_ahead_log_left_by_a_crash_can_be_opened(tmp_path: Path) -> None:
    await leave_crashed_store(tmp_path / "hark.db")
    store = await open_store(tmp_path / "hark.db")
    assert [entry.command for entry in await store.inbox.entries_after("s", 0)] == [make_say("a")]
    await store.close()


@pytest.mark.parametrize("has_log", [False, True])
async def test_a_database_from_a_newer_version_is_refused(tmp_path: Path, has_log: bool) -> None:
    path = tmp_path / "hark.db"
    await fill_store(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {CURRENT_VERSION + 1}")
        copies = read_files(tmp_path) if has_log else {}
    for name, content in copies.items():
        (tmp_path / name).write_bytes(content)
    assert ("hark.db-wal" in read_files(tmp_path)) == has_log
    reason = await open_expecting_refusal(path)
    assert "newer Hark" in reason
    assert "Upgrade" in reason


async def test_a_database_from_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "places.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE places (name)")
    assert "another program" in await open_expecting_refusal(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1")
    assert "another program" in await open_expecting_refusal(path)


async def test_a_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hark.db"
    path.write_bytes(b"Dear diary, " * 1000)
    assert "not a database" in await open_expecting_refusal(path)


@pytest.mark.parametrize("size", [50, 5000, -4096])
async def test_a_truncated_file_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "hark.db"
    await fill_store(path)
    path.write_bytes(path.read_bytes()[:size])
    reason = await open_expecting_refusal(path)
    assert "damaged" in reason
    assert ("only 50 bytes" if size == 50 else "instead of") in reason


async def test_an_empty_or_missing_database_with_a_filled_write_ahead_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hark.db"
    await leave_crashed_store(path)
    path.write_bytes(b"")
    assert "empty or missing" in await open_expecting_refusal(path)
    path.unlink()
    assert "empty or missing" in await open_expecting_refusal(path)


async def test_a_database_with_damaged_pages_and_a_write_ahead_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hark.db"
    await fill_store(path)
    store = await open_store(path)
    await store.inbox.put("t", make_say("a"))
    content = bytearray(path.read_bytes())
    log = path.with_name("hark.db-wal").read_bytes()
    await store.close()
    content[8192:-4096] = b"\xa5" * (len(content) - 8192 - 4096)
    path.write_bytes(content)
    path.with_name("hark.db-wal").write_bytes(log)
    assert "damaged" in await open_expecting_refusal(path)


async def test_damage_found_after_opening_the_database_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "hark.db"
    await fill_store(path)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle:] = b"\xa5" * (len(content) - middle)
    path.write_bytes(content)
    store = await open_store(path)
    with pytest.raises(StoreUnusable, match="damaged"):
        await store.journal.read("s")
    await store.close()


async def test_a_directory_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="Check that its directory") as caught:
        await open_store(tmp_path / "file" / "hark.db")
    assert str(tmp_path / "file" / "hark.db") in str(caught.value)


async def test_a_directory_at_the_path_of_the_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "hark.db").mkdir()
    with pytest.raises(StoreError, match="Check that its directory"):
        await open_store(tmp_path / "hark.db")


async def test_a_new_database_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "home" / "hark.db", "me", TestClock())
    await store.inbox.put("s", make_say("1"))
    modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "home").iterdir() if file.is_file()}
    await store.close()
    assert modes["hark.db"] == 0o600
    assert set(modes.values()) == {0o600}


async def test_a_database_whose_creation_was_interrupted_is_rolled_back_and_opened(tmp_path: Path) -> None:
    unfinished, path = tmp_path / "unfinished.db", tmp_path / "copy" / "hark.db"
    unfinished.touch()
    path.parent.mkdir()
    with closing(sqlite3.connect(unfinished, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")  # so that pages are written before the commit
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE half (value)")
        connection.executemany("INSERT INTO half VALUES (?)", [["x" * 3000]] * 50)
        for suffix in ("", "-journal"):
            shutil.copy(f"{unfinished}{suffix}", f"{path}{suffix}")
    assert [name for name, content in sorted(read_files(path.parent).items()) if content] == [
        "hark.db",
        "hark.db-journal",
    ]
    await fill_store(path)
    assert read_version_and_application(path) == (CURRENT_VERSION, APPLICATION_ID)
