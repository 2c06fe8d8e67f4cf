"""Opening the database file: looked at first, and left untouched when something is wrong with it."""

import sqlite3
import time
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import quote

from hark.protocol.store import StoreError, StoreUnusable
from hark.store.failures import damaged, explain
from hark.store.schema import check_marks, check_version, migrate

BUSY_SECONDS = 5.0
QUICK_CHECK_BYTES = 16 * 1024 * 1024
_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100


def connect(path: Path) -> sqlite3.Connection:
    """Open the database for writing, made or migrated where needed; may block on another process.

    Raises:
        StoreUnusable: It is damaged, newer, or not a database of Hark's. It was not changed.
        StoreError: It can't be opened.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _examine(path)
        path.touch(mode=0o600)  # conversations are nobody else's business; SQLite gives its log the same mode
    except OSError as error:
        raise StoreError(
            f"{path} can't be opened ({error.strerror}). Check that its directory exists, is yours, and may be "
            "written to."
        ) from error
    with ExitStack() as on_failure:
        connection = on_failure.enter_context(closing(open_connection(path, "rwc")))
        try:
            use_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")
            migrate(connection, str(path))
        except sqlite3.Error as error:
            raise explain(error, str(path)) from error
        on_failure.pop_all()
        return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """Open a database that `connect` has opened before, for reading only."""
    connection = open_connection(path, "rw")
    connection.execute("PRAGMA query_only = ON")
    return connection


def open_connection(path: Path, mode: str) -> sqlite3.Connection:
    """Open a file in one of SQLite's modes; any thread may use the connection.

    Raises:
        StoreError: It can't be opened.
    """
    try:
        return sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
    except sqlite3.Error as error:
        raise explain(error, str(path)) from error


def use_wal(connection: sqlite3.Connection) -> None:
    """Have the database write to a log beside it, so that readers and a writer don't wait for each other."""
    # SQLite does not wait by itself when two processes turn the log on at the same moment.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return


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
    try:
        # A connection that may only read does not fold the log into the file when it is closed.
        with closing(open_connection(path, "ro")) as connection:
            check_marks(connection, str(path))
            if is_checked:
                [finding] = connection.execute("PRAGMA quick_check(1)").fetchone()
                if finding != "ok":
                    raise damaged(str(path), finding)
    except sqlite3.Error as error:
        raise explain(error, str(path)) from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
