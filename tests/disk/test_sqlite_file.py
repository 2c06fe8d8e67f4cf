"""A database and its log files are private to their owner."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from hark.disk.sqlite_file import open_database
from hark.protocol.chat import Address, Author, IncomingMessage
from hark.store.chat_ledger import SqliteChatLedger

SCHEMA = "CREATE TABLE IF NOT EXISTS t (x)"


def create_table(connection: sqlite3.Connection) -> None:
    connection.execute(SCHEMA)


def collect_modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_new_database_and_its_log_files_are_private(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with closing(open_database(tmp_path / "home" / "a.db", create_table)):
            assert collect_modes(tmp_path / "home") == {"a.db": 0o600, "a.db-wal": 0o600, "a.db-shm": 0o600}
            assert collect_modes(tmp_path) == {"home": 0o700}
    finally:
        os.umask(before)


async def test_a_world_readable_ledger_and_its_log_files_become_private(tmp_path: Path) -> None:
    file = tmp_path / "gateway.db"
    crashed = sqlite3.connect(file, isolation_level=None)
    crashed.execute("PRAGMA journal_mode = WAL")
    crashed.execute(SCHEMA)
    for name in collect_modes(tmp_path):
        (tmp_path / name).chmod(0o644)
    ledger = SqliteChatLedger(file)
    address = Address("telegram", "1")
    assert await ledger.accept(IncomingMessage("1", address, Author("1", "me"), "hello")) is not None
    assert collect_modes(tmp_path) == {"gateway.db": 0o600, "gateway.db-wal": 0o600, "gateway.db-shm": 0o600}
    assert [stored.incoming.id for stored in await ledger.pending("telegram")] == ["1"]
    await ledger.close()
    crashed.close()


def test_a_database_is_closed_if_preparing_it_fails(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        open_database(tmp_path / "a.db", lambda connection: connection.execute("nonsense"))
    with closing(open_database(tmp_path / "a.db", create_table)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
