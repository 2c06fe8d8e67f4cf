"""Opens SQLite databases: private to their owner, with a write-ahead log, usable from any thread."""

import contextlib
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from hark.disk.private_files import create_private, tighten

BUSY_SECONDS = 5.0


def open_database(
    path: Path, prepare: Callable[[sqlite3.Connection], object], synchronous: Literal["FULL", "NORMAL"] = "FULL"
) -> sqlite3.Connection:
    """Open a database for writing, created with its folder if missing; `prepare` makes its tables.

    FULL: a commit is on disk when it returns. NORMAL: a power cut may undo the last commits. May block on another
    process.

    Raises:
        OSError, sqlite3.Error: It can't be opened. What `prepare` raises is raised, too.
    """
    try:
        create_private(path)
    except FileExistsError:
        # By name: closing a descriptor of the file would release the locks that this process has on it.
        for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            with contextlib.suppress(FileNotFoundError):
                tighten(file)
    with contextlib.ExitStack() as on_failure:
        connection = on_failure.enter_context(contextlib.closing(open_file(path, "rw")))
        _use_wal(connection)
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        prepare(connection)
        on_failure.pop_all()
        return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a database that `open_database` has opened before, for reading only."""
    connection = open_file(path, "rw")
    connection.execute("PRAGMA query_only = ON")
    return connection


def open_file(path: Path, mode: Literal["ro", "rw"]) -> sqlite3.Connection:
    """Open an existing file in one of SQLite's modes and leave it as it is."""
    return sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def _use_wal(connection: sqlite3.Connection) -> None:
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
