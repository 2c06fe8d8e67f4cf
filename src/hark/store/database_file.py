"""Opening the database file: looked at first, and left untouched when something is wrong with it."""

import sqlite3
from contextlib import closing
from pathlib import Path

from hark.disk.sqlite_file import open_database, open_file
from hark.protocol.store import StoreUnusable
from hark.store.failures import damaged, explained
from hark.store.schema import check_marks, check_version, migrate

QUICK_CHECK_BYTES = 16 * 1024 * 1024
_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100


def connect(path: Path) -> sqlite3.Connection:
    """Open the store's database for writing, made or migrated where needed; may block on another process.

    Raises:
        StoreUnusable: It is damaged, newer, or not a database of Hark's. It was not changed.
        StoreError: It can't be opened.
    """
    with explained(path):
        _examine(path)
        return open_database(path, lambda connection: migrate(connection, str(path)))


def connect_with(path: Path, schema: str) -> sqlite3.Connection:
    """Open a small database for writing, with these tables; may block on another process.

    Raises:
        StoreError: It can't be opened.
    """
    with explained(path):
        return open_database(path, lambda connection: connection.executescript(schema))


def _examine(path: Path) -> None:
    """Look for damage without SQLite's own opening, which may change the file."""
    # The log is looked at first: it comes into being after the file has its header, and no one truncates it meanwhile.
    log_bytes = _size(path.with_name(path.name + "-wal"))
    file_bytes = _size(path)
    if file_bytes == 0:
        if log_bytes:
            raise damaged(str(path), "the file is empty or missing, but its -wal file is not")
        return
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if not header.startswith(_MAGIC[: len(header)]):
        raise StoreUnusable(
            f"{path} is not a database. It was not changed. Choose another file, or move this one away."
        )
    if len(header) < _HEADER_BYTES:
        raise damaged(str(path), f"only {len(header)} bytes of it are there")
    if log_bytes:
        _examine_by_reading(path, is_checked=file_bytes < QUICK_CHECK_BYTES)
    else:
        _examine_header(path, header, file_bytes)


def _examine_header(path: Path, header: bytes, file_bytes: int) -> None:
    page_bytes = int.from_bytes(header[16:18], "big")
    expected = (65536 if page_bytes == 1 else page_bytes) * int.from_bytes(header[28:32], "big")
    if file_bytes < expected:
        raise damaged(str(path), f"it has {file_bytes} bytes and should have {expected}")
    version = int.from_bytes(header[60:64], "big", signed=True)
    check_version(version, int.from_bytes(header[68:72], "big", signed=True), str(path))
    if version == 0:
        _examine_by_reading(path, is_checked=False)


def _examine_by_reading(path: Path, is_checked: bool) -> None:
    # A connection that may only read does not fold the log into the file when it is closed.
    with closing(open_file(path, "ro")) as connection:
        check_marks(connection, str(path))
        if is_checked:
            [finding] = connection.execute("PRAGMA quick_check(1)").fetchone()
            if finding != "ok":
                raise damaged(str(path), finding)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
