"""Opening the database file: looked at first, and left untouched when something is wrong with it."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from hark.disk.sqlite_file import open_database, open_file
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


APPLICATION_ID = 0x4861726B  # "Hark", in the file's header: a database of another program is not ours to change

# Each item leads from the version that is its index to the next one. An item never changes once it was released.
# Small rows live in their key's own tree (WITHOUT ROWID). Bodies don't: appended in order of arrival, those of many
# sessions share pages, which halves the cost of a commit.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE inbox (
            session TEXT NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL, body BLOB NOT NULL,
            PRIMARY KEY (session, seq), UNIQUE (session, id)
        )""",
        """CREATE TABLE journal (
            session TEXT NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL,
            PRIMARY KEY (session, seq)
        )""",
        """CREATE TABLE sessions (
            session TEXT PRIMARY KEY, length INTEGER NOT NULL, cursor INTEGER NOT NULL,
            is_open INTEGER NOT NULL, is_waiting INTEGER NOT NULL, turns INTEGER NOT NULL,
            title TEXT NOT NULL, updated_at REAL NOT NULL
        ) WITHOUT ROWID""",
        # A lease that was given up keeps its row, with no owner, so that its epoch is never used again.
        "CREATE TABLE leases (session TEXT PRIMARY KEY, owner TEXT NOT NULL, epoch INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE TABLE owners (owner TEXT PRIMARY KEY, expires_at REAL NOT NULL) WITHOUT ROWID",
    ),
    (
        # The sessions that were deleted, for the search index beside this file. Numbers of journal rows above
        # `last_row` were free again after that, and may name other rows since.
        """CREATE TABLE forgotten (
            number INTEGER PRIMARY KEY, session TEXT NOT NULL, last_row INTEGER NOT NULL
        )""",
        # What tells this database from another one at the same place.
        "CREATE TABLE identity (id TEXT NOT NULL)",
        "INSERT INTO identity VALUES (lower(hex(randomblob(8))))",
    ),
)
CURRENT_VERSION = len(MIGRATIONS)


def migrate(connection: sqlite3.Connection, place: str) -> None:
    """Bring the tables to the current version, all steps or none.

    Raises:
        StoreUnusable: The database is newer, or another program's.
    """
    if check_marks(connection, place) == CURRENT_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = check_marks(connection, place)  # asked again: another process may have been faster
        for step in MIGRATIONS[version:]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {CURRENT_VERSION}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def check_marks(connection: sqlite3.Connection, place: str) -> int:
    """Return the version of the tables.

    Raises:
        StoreUnusable: The database is newer, or another program's.
    """
    [version] = connection.execute("PRAGMA user_version").fetchone()
    [application] = connection.execute("PRAGMA application_id").fetchone()
    check_version(version, application, place)
    if version == 0 and connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise _foreign(place)
    return version


def check_version(version: int, application: int, place: str) -> None:
    """Tell whether this program may use a database with these marks.

    Raises:
        StoreUnusable: It is newer, or another program's.
    """
    if application != (APPLICATION_ID if version else 0):
        raise _foreign(place)
    if version > CURRENT_VERSION:
        raise StoreUnusable(
            f"The database {place} was made by a newer Hark (version {version} of its tables; this program knows up to "
            f"{CURRENT_VERSION}). It was not changed. Upgrade Hark, or move the file away to start with an empty one."
        )


def _foreign(place: str) -> StoreUnusable:
    return StoreUnusable(
        f"{place} is a database of another program. It was not changed. Choose another file, or move this one away."
    )


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
