"""Opening the search index: one that is damaged, or of another version, is made anew."""

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

from hark.protocol.store import StoreError
from hark.store.database_file import open_connection, use_wal
from hark.store.failures import explain
from hark.store.index_rows import TABLES, VERSION


def connect_index(path: Path | None) -> sqlite3.Connection:
    """Open the index for writing, made where needed, or one in memory; may block on another process.

    Raises:
        StoreError: It can't be opened.
    """
    if path is None:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        _make(connection)
        return connection
    try:
        return _connect(path)
    except sqlite3.OperationalError as error:  # locked, full, no way to it: not a reason to throw it away
        raise explain(error, str(path)) from error
    except sqlite3.DatabaseError:
        remove_index(path)
    try:
        return _connect(path)
    except sqlite3.Error as error:
        raise explain(error, str(path)) from error


def remove_index(path: Path) -> None:
    """Throw the index away. A process that has it open goes on with the old one until it ends.

    Raises:
        StoreError: It can't be removed.
    """
    try:
        for end in ("", "-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
    except OSError as error:
        raise _unusable(path, error) from error


def _connect(path: Path) -> sqlite3.Connection:
    try:
        if not path.exists():
            path.touch(mode=0o600)  # it has the words of conversations
    except OSError as error:
        raise _unusable(path, error) from error
    with ExitStack() as on_failure:
        connection = on_failure.enter_context(closing(open_connection(path, "rw")))
        use_wal(connection)
        connection.execute("PRAGMA synchronous = NORMAL")  # what a power cut takes is made again
        _make(connection)
        on_failure.pop_all()
        return connection


def _make(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if version not in (0, VERSION):
        connection.execute("ROLLBACK")
        raise sqlite3.DatabaseError(f"version {version} of the index")
    for statement in TABLES if version == 0 else ():
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _unusable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"The search index {path} can't be used ({error.strerror}). Check that its directory is yours.")
