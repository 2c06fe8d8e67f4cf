"""Opens the database file. Refuses a damaged or newer file, or another program's, without changing it."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from hark.disk.sqlite_file import connect_to_file, open_database
from hark.protocol.store import StoreError, StoreUnusable

_PRIMARY_CODE = 0xFF  # the low byte of SQLite's extended codes


@contextmanager
def translate_errors(path: Path) -> Generator[None]:
    """Translate SQLite and disk errors while a database is being opened.

    Raises:
        StoreError: The database can't be opened. The text says why and what to do.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise to_store_error(error, str(path)) from error
    except OSError as error:
        raise StoreError(
            f"{path} can't be opened ({error.strerror}). Check that its directory exists, belongs to you, and is "
            "writable."
        ) from error


def to_store_error(error: sqlite3.Error, location: str) -> StoreError:
    """Return the StoreError for an SQLite error. The failed transaction was rolled back."""
    match error.sqlite_errorcode & _PRIMARY_CODE if _has_code(error) else 0:
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            store_error = damaged_error(location, str(error))
        case sqlite3.SQLITE_FULL:
            store_error = StoreError(
                f"The disk is full, so {location} can't be written ({error}). Free some space, then send your message "
                "again."
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            store_error = StoreError(
                f"Another process has locked {location} ({error}). Nothing was saved. Find and stop that process, then "
                "send your message again."
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            store_error = StoreError(
                f"{location} can't be opened for writing ({error}). Check that its directory exists, belongs to you, "
                "and is writable."
            )
        case _:
            store_error = StoreError(
                f"{location} could not be read or written ({error}). Nothing was saved. Check the disk."
            )
    store_error.__cause__ = error
    return store_error


def damaged_error(location: str, detail: str) -> StoreUnusable:
    """Return the error for a damaged database."""
    return StoreUnusable(
        f"The database {location} is damaged: {detail}. It was not changed. Restore it from a backup, or move it "
        f"and its -wal and -shm files elsewhere to start with an empty one."
    )


def describe_location(connection: sqlite3.Connection) -> str:
    """Return the path of a connection's database, without reading the file."""
    return connection.execute("PRAGMA database_list").fetchone()[2] or "the database in memory"


def _has_code(error: sqlite3.Error) -> bool:
    # Errors of the Python module itself, such as a closed connection, have no code.
    return "sqlite_errorcode" in vars(error)


APPLICATION_ID = 0x4861726B  # "Hark" in the file's header, so that databases of other programs are never changed

# Each item migrates from the version that is its index to the next. An item never changes once it is released. Small
# rows are stored in the tree of their key (WITHOUT ROWID). Bodies are not: appended in order of arrival, bodies of
# many sessions share pages, which halves the cost of a commit.
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
        # A released lease keeps its row without an owner, so that its epoch is never reused.
        "CREATE TABLE leases (session TEXT PRIMARY KEY, owner TEXT NOT NULL, epoch INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE TABLE owners (owner TEXT PRIMARY KEY, expires_at REAL NOT NULL) WITHOUT ROWID",
    ),
    (
        # Deleted sessions, for the search index in the file next to this one. After the deletion, journal row numbers
        # above `last_row` were free and may since belong to other rows.
        """CREATE TABLE forgotten (
            number INTEGER PRIMARY KEY, session TEXT NOT NULL, last_row INTEGER NOT NULL
        )""",
        # Distinguishes this database from another one at the same path.
        "CREATE TABLE identity (id TEXT NOT NULL)",
        "INSERT INTO identity VALUES (lower(hex(randomblob(8))))",
    ),
)
CURRENT_VERSION = len(MIGRATIONS)


def migrate(connection: sqlite3.Connection, location: str) -> None:
    """Migrate the tables to the current version in one transaction.

    Raises:
        StoreUnusable: The database is newer, or belongs to another program.
    """
    if read_version(connection, location) == CURRENT_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = read_version(connection, location)  # again, as another process may have migrated it
        for step in MIGRATIONS[version:]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {CURRENT_VERSION}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def read_version(connection: sqlite3.Connection, location: str) -> int:
    """Return the schema version.

    Raises:
        StoreUnusable: The database is newer, or belongs to another program.
    """
    [version] = connection.execute("PRAGMA user_version").fetchone()
    [application_id] = connection.execute("PRAGMA application_id").fetchone()
    check_version(version, application_id, location)
    if version == 0 and connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise _foreign_database_error(location)
    return version


def check_version(version: int, application_id: int, location: str) -> None:
    """Check that this program can use a database with this version and application id.

    Raises:
        StoreUnusable: The database is newer, or belongs to another program.
    """
    if application_id != (APPLICATION_ID if version else 0):
        raise _foreign_database_error(location)
    if version > CURRENT_VERSION:
        raise StoreUnusable(
            f"The database {location} was created by a newer Hark (its tables have version {version}; this program "
            f"supports up to {CURRENT_VERSION}). It was not changed. Upgrade Hark, or move the file to start with "
            "an empty one."
        )


def _foreign_database_error(location: str) -> StoreUnusable:
    return StoreUnusable(
        f"{location} is a database of another program. It was not changed. Choose another file, or move this one."
    )


MAX_QUICK_CHECK_BYTES = 16 * 1024 * 1024
_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100


def connect(path: Path) -> sqlite3.Connection:
    """Open the store's database for writing, creating or migrating it if necessary. May wait for another process.

    Raises:
        StoreUnusable: The database is damaged, newer, or belongs to another program. It was not changed.
        StoreError: The database can't be opened.
    """
    with translate_errors(path):
        _finish_rollback(path)
        _check_file(path)
        return open_database(path, lambda connection: migrate(connection, str(path)))


def connect_with_schema(path: Path, schema: str) -> sqlite3.Connection:
    """Open a small database for writing, and run the statements in `schema`. May wait for another process.

    Raises:
        StoreError: The database can't be opened.
    """
    with translate_errors(path):
        return open_database(path, lambda connection: connection.executescript(schema))


def _finish_rollback(path: Path) -> None:
    """Let SQLite undo a transaction that a crash interrupted before the write-ahead log was enabled."""
    if path.exists() and _file_bytes(path.with_name(path.name + "-journal")):
        with closing(connect_to_file(path, "rw")) as connection:
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()


def _check_file(path: Path) -> None:
    """Check the file for damage without opening it in SQLite, which could change the file."""
    # Check the log first. It is created after the file has its header, and no process truncates it meanwhile.
    log_bytes = _file_bytes(path.with_name(path.name + "-wal"))
    file_bytes = _file_bytes(path)
    if file_bytes == 0:
        if log_bytes:
            raise damaged_error(str(path), "the file is empty or missing, but its -wal file is not")
        return
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if not header.startswith(_MAGIC[: len(header)]):
        raise StoreUnusable(f"{path} is not a database. It was not changed. Choose another file, or move this one.")
    if len(header) < _HEADER_BYTES:
        raise damaged_error(str(path), f"the file has only {len(header)} bytes")
    if log_bytes:
        _check_by_reading(path, has_quick_check=file_bytes < MAX_QUICK_CHECK_BYTES)
    else:
        _check_header(path, header, file_bytes)


def _check_header(path: Path, header: bytes, file_bytes: int) -> None:
    page_bytes = int.from_bytes(header[16:18], "big")
    expected = (65536 if page_bytes == 1 else page_bytes) * int.from_bytes(header[28:32], "big")
    if file_bytes < expected:
        raise damaged_error(str(path), f"the file has {file_bytes} bytes instead of {expected}")
    version = int.from_bytes(header[60:64], "big", signed=True)
    check_version(version, int.from_bytes(header[68:72], "big", signed=True), str(path))
    if version == 0:
        _check_by_reading(path, has_quick_check=False)


def _check_by_reading(path: Path, has_quick_check: bool) -> None:
    # A read-only connection does not checkpoint the log into the file when it is closed.
    with closing(connect_to_file(path, "ro")) as connection:
        read_version(connection, str(path))
        if has_quick_check:
            [finding] = connection.execute("PRAGMA quick_check(1)").fetchone()
            if finding != "ok":
                raise damaged_error(str(path), finding)


def _file_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
