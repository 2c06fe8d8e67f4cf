"""Search in the sessions of a SQLite store. The index is updated only when a search runs.

The index has its own file, which only searches write to, so turns never wait for it when they commit. The index is
built from the journal, resumes where it stopped, and can be rebuilt at any time.
"""

import sqlite3
from contextlib import suppress
from pathlib import Path
from sqlite3 import Connection

import msgspec
from msgspec import Struct

from hark.disk.sqlite_file import open_database
from hark.protocol.names import is_background
from hark.protocol.store import SearchHit, SearchQuery, StoreError, StoreUnusable
from hark.store.commit_thread import Committer, CommitThread, closed_error
from hark.store.database_file import translate_errors
from hark.store.search_text import (
    Phrase,
    SearchableMessage,
    extract_messages,
    make_snippet,
    matches_as_prefix,
    parse_phrases,
    split_words,
)
from hark.store.sqlite_statements import RECORD_DECODER

VERSION = 1  # of the tables and the word splitting; a different version causes a rebuild
MAX_BATCH_ROWS = 200
MAX_BATCH_BYTES = 500_000
MAX_DELETED_MESSAGES = 1_000
TABLES = (
    """CREATE TABLE lines (
        session TEXT NOT NULL, turn TEXT NOT NULL, at REAL NOT NULL, who TEXT NOT NULL, text TEXT NOT NULL
    )""",
    "CREATE INDEX lines_of_session ON lines (session)",
    # Words are passed separated by blanks, and this tokenizer treats all non-ASCII characters as letters.
    "CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = 'ascii')",
    "CREATE TABLE mark (store TEXT NOT NULL, journal INTEGER NOT NULL, forgotten INTEGER NOT NULL)",
    "INSERT INTO mark VALUES ('', 0, 0)",
)
_JOURNAL_END = """
SELECT id, coalesce((SELECT max(rowid) FROM journal), 0), coalesce((SELECT max(number) FROM forgotten), 0)
FROM identity"""
_FIND = """
SELECT session, turn, at, who, lines.text FROM words JOIN lines ON lines.rowid = words.rowid
WHERE words MATCH ?1 AND (?2 = '' OR session = ?2) AND at >= ?3 AND (?4 = '' OR turn <> ?4)
ORDER BY {} LIMIT ?5"""
_NEWEST = _FIND.format("words.rowid DESC")
_BEST = _FIND.format("rank")


class IndexPosition(Struct, frozen=True):
    """The position of the index: the database's id, its last indexed journal row, and the last deletion applied."""

    store: str
    journal: int = 0
    forgotten: int = 0


class IndexBatch(Struct, frozen=True):
    """The changes after a position: sessions to delete first, then messages to add, up to the next position.

    `is_rebuild`: the index belongs to another database, and must be emptied.
    """

    position: IndexPosition
    deleted_sessions: tuple[str, ...] = ()
    messages: tuple[tuple[str, SearchableMessage], ...] = ()
    is_rebuild: bool = False


def read_position(connection: Connection) -> IndexPosition:
    """Return the position of the index."""
    return IndexPosition(*connection.execute("SELECT store, journal, forgotten FROM mark").fetchone())


def read_next_batch(journal: Connection, position: IndexPosition, row_limit: int = MAX_BATCH_ROWS) -> IndexBatch:
    """Return the next changes in the journal, bounded in size. Without changes, the position stays the same."""
    [store, last_row, last_forgotten] = journal.execute(_JOURNAL_END).fetchone()
    if store != position.store or last_forgotten < position.forgotten:
        return IndexBatch(IndexPosition(store), is_rebuild=True)
    query = "SELECT number, session, last_row FROM forgotten WHERE number > ? ORDER BY number"
    deletions = journal.execute(query, (position.forgotten,)).fetchall()
    # Row numbers that became free by a deletion may be reused, so rows from there on are indexed again.
    last = min([position.journal, *(last_row_left for _, _, last_row_left in deletions)])
    if last > last_row:
        return IndexBatch(IndexPosition(store), is_rebuild=True)  # rows are missing: an older copy was restored
    messages: list[tuple[str, SearchableMessage]] = []
    size = 0
    rows = journal.execute(
        "SELECT rowid, session, body FROM journal WHERE rowid > ? ORDER BY rowid LIMIT ?", (last, row_limit)
    )
    for row, session, body in rows:
        last = row
        size += len(body)
        if not is_background(session):
            messages.extend((session, message) for message in _decode_messages(body))
        if size > MAX_BATCH_BYTES:
            break
    number = deletions[-1][0] if deletions else position.forgotten
    deleted_sessions = tuple(session for _, session, _ in deletions)
    return IndexBatch(IndexPosition(store, last, number), deleted_sessions, tuple(messages))


def apply_batch(index: Connection, position: IndexPosition, batch: IndexBatch) -> None:
    """Apply a batch to the index, unless another process has updated the index meanwhile."""
    if read_position(index) != position:
        return
    if batch.is_rebuild:
        index.execute("DELETE FROM lines")
        index.execute("INSERT INTO words (words) VALUES ('delete-all')")
    for session in batch.deleted_sessions:
        if not _delete_session(index, session):
            return  # the position is unchanged, so the next batch continues here
    for session, message in batch.messages:
        row = (session, message.turn, message.at, message.who, message.text)
        added = index.execute("INSERT INTO lines (session, turn, at, who, text) VALUES (?, ?, ?, ?, ?)", row)
        indexed_words = " ".join(split_words(message.text))
        index.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (added.lastrowid, indexed_words))
    new = batch.position
    index.execute("UPDATE mark SET store = ?, journal = ?, forgotten = ?", (new.store, new.journal, new.forgotten))


def find_messages(index: Connection, query: SearchQuery) -> list[SearchHit]:
    """Return the messages that match the query."""
    phrases = parse_phrases(query.words)
    if not phrases or query.limit < 1:
        return []
    terms = (" OR " if query.is_any else " AND ").join(_match_term(phrase) for phrase in phrases)
    values = (terms, query.session, query.since, query.without_turn, query.limit)
    rows = index.execute(_BEST if query.is_any else _NEWEST, values)
    return [SearchHit(session, turn, at, who, make_snippet(text, phrases)) for session, turn, at, who, text in rows]


def _delete_session(index: Connection, session: str) -> bool:
    """Delete a batch of a session's messages from the index. Return True if no messages are left."""
    query = "SELECT rowid, text FROM lines WHERE session = ? LIMIT ?"
    rows = index.execute(query, (session, MAX_DELETED_MESSAGES)).fetchall()
    for row, text in rows:
        # An index without the text needs the words that are to be removed.
        indexed_words = " ".join(split_words(text))
        index.execute("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (row, indexed_words))
        index.execute("DELETE FROM lines WHERE rowid = ?", (row,))
    return len(rows) < MAX_DELETED_MESSAGES


def _decode_messages(body: bytes) -> list[SearchableMessage]:
    try:
        return extract_messages(RECORD_DECODER.decode(body))
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        return []  # opening the session reports an invalid record


def _match_term(phrase: Phrase) -> str:
    # Words contain no quotation marks.
    return f'"{" ".join(phrase)}"{" *" if matches_as_prefix(phrase[-1]) else ""}'


class SqliteSearch:
    """Searches with an index, in a thread that the first search starts. Turns neither update nor wait for the index."""

    def __init__(self, journal: Committer, path: Path | None = None) -> None:
        """Create a search of this journal. The index is stored in the file at `path`, or in memory."""
        self._journal = journal
        self._path = path
        self._index: CommitThread | None = None
        self._is_closed = False

    async def find(self, query: SearchQuery) -> list[SearchHit]:
        """Return the messages that match the query. Cancelling keeps the indexing progress."""
        index = self._open_index()
        try:
            return await self._find_messages(query)
        except StoreUnusable:
            if self._path is None:
                raise
            await self._rebuild(index, self._path)
        return await self._find_messages(query)

    async def remove_deleted_sessions(self) -> None:
        """Remove deleted sessions from the index. If this fails, the next search repeats it."""
        if self._index is None and (self._path is None or not self._path.exists()):
            return
        with suppress(StoreError):
            await self._update_index(row_limit=0)

    async def close(self) -> None:
        """Stop the thread after its current operation. The caller must limit the waiting time."""
        self._is_closed = True
        if self._index is not None:
            await self._index.close()

    async def _find_messages(self, query: SearchQuery) -> list[SearchHit]:
        await self._update_index()
        return await self._open_index().submit(lambda index: find_messages(index, query))

    async def _update_index(self, row_limit: int = MAX_BATCH_ROWS) -> None:
        """Add the journal's new records to the index, in small batches with short transactions."""
        while True:
            position = await self._open_index().submit(read_position)
            batch = await self._journal.submit(
                lambda journal, position=position: read_next_batch(journal, position, row_limit)
            )
            if batch.position == position:
                return
            await self._open_index().submit(
                lambda index, position=position, batch=batch: apply_batch(index, position, batch)
            )

    async def _rebuild(self, broken: CommitThread, path: Path) -> None:
        await broken.close()
        if self._index is broken:  # otherwise another search has rebuilt the index
            self._index = None
            remove_index(path)

    def _open_index(self) -> CommitThread:
        if self._is_closed:
            raise closed_error()
        if self._index is None:
            self._index = CommitThread(lambda: connect_index(self._path), max_batch=1)
        return self._index


def connect_index(path: Path | None) -> sqlite3.Connection:
    """Open the index for writing, or an index in memory. A damaged or outdated index is rebuilt.

    Raises:
        StoreError: The index can't be opened.
    """
    if path is None:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        _create_tables(connection)
        return connection
    with translate_errors(path):
        try:
            return open_database(path, _create_tables, "NORMAL")  # data lost by a power failure is indexed again
        except sqlite3.OperationalError:  # locked, full or unreachable: no reason to delete the index
            raise
        except sqlite3.DatabaseError:
            remove_index(path)
        return open_database(path, _create_tables, "NORMAL")


def remove_index(path: Path) -> None:
    """Delete the index. A process that has it open continues to use the deleted file until the process ends.

    Raises:
        StoreError: The index can't be deleted.
    """
    with translate_errors(path):
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


def _create_tables(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if version not in (0, VERSION):
        connection.execute("ROLLBACK")
        raise sqlite3.DatabaseError(f"unsupported index version {version}")
    for statement in TABLES if version == 0 else ():
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
