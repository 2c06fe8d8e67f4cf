"""SQLite's errors in words that say what to do, translated once."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from hark.protocol.store import StoreError, StoreUnusable

_PRIMARY_CODE = 0xFF  # the low byte of SQLite's extended codes


@contextmanager
def explained(path: Path) -> Generator[None]:
    """Translate what SQLite and the disk raise while a database is opened.

    Raises:
        StoreError: It can't be opened; the text says why, and what to do.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise explain(error, str(path)) from error
    except OSError as error:
        raise StoreError(
            f"{path} can't be opened ({error.strerror}). Check that its directory exists, is yours, and may be "
            "written to."
        ) from error


def explain(error: sqlite3.Error, place: str) -> StoreError:
    """Return what `error` means for the database at `place`; nothing of the failed transaction is in it."""
    match error.sqlite_errorcode & _PRIMARY_CODE if _has_code(error) else 0:
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            failure = damaged(place, str(error))
        case sqlite3.SQLITE_FULL:
            failure = StoreError(
                f"The disk is full: nothing more can be saved in {place} ({error}). Free some space, then say it again."
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            failure = StoreError(
                f"Another process keeps {place} locked ({error}). Nothing was saved. Find and end that process, then "
                "say it again."
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            failure = StoreError(
                f"{place} can't be opened for writing ({error}). Check that its directory exists, is yours, and may be "
                "written to."
            )
        case _:
            failure = StoreError(f"{place} could not be read or written ({error}). Nothing was saved. Check the disk.")
    failure.__cause__ = error
    return failure


def damaged(place: str, detail: str) -> StoreUnusable:
    """Return the error for a database that is broken."""
    return StoreUnusable(
        f"The database {place} is damaged: {detail}. It was not changed. Restore it from a backup, or move it away "
        f"together with its -wal and -shm files to start with an empty one."
    )


def place_of(connection: sqlite3.Connection) -> str:
    """Return the path of a connection's database; asking does not read the file."""
    return connection.execute("PRAGMA database_list").fetchone()[2] or "the database in memory"


def _has_code(error: sqlite3.Error) -> bool:
    # Errors of the Python module itself, such as a closed connection, have no code.
    return "sqlite_errorcode" in vars(error)
