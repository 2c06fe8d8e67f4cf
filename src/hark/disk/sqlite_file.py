"""Opens SQLite databases that are private to their owner, use a write-ahead log, and work from any thread."""

import contextlib
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from hark.disk.private_files import create_private, restrict_access

BUSY_SECONDS = 5.0


def open_database(
    path: Path, prepare: Callable[[sqlite3.Connection], object], synchronous: Literal["FULL", "NORMAL"] = "FULL"
) -> sqlite3.Connection:
    """Open a database for writing. Creates the file and its folder if missing; `prepare` creates the tables.

    With FULL, a commit is on disk when it returns; with NORMAL, a power failure may undo the last commits. May block
    while another process writes.

    Raises:
        OSError, sqlite3.Error: The database can't be opened. Errors of `prepare` are raised too.
    """
    try:
        create_private(path)
    except FileExistsError:
        # By path, because closing a descriptor of the file would release the locks that this process holds on it.
        for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            with contextlib.suppress(FileNotFoundError):
                restrict_access(file)
    with contextlib.ExitStack() as on_failure:
        connection = on_failure.enter_context(contextlib.closing(connect_to_file(path, "rw")))
        _enable_wal(connection)
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        prepare(connection)
        on_failure.pop_all()
        return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """Open an existing database read-only. The database must have been opened with `open_database` before."""
    connection = connect_to_file(path, "rw")
    connection.execute("PRAGMA query_only = ON")
    return connection


def connect_to_file(path: Path, mode: Literal["ro", "rw"]) -> sqlite3.Connection:
    """Connect to an existing database file in one of SQLite's modes, without changing its settings."""
    return sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def _enable_wal(connection: sqlite3.Connection) -> None:
    # SQLite doesn't wait when two processes enable the write-ahead log at the same moment.
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
