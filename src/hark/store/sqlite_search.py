"""Search in the sessions of a SQLite store: the index catches up when somebody searches, never before.

The index has a file of its own, which nothing but a search writes to: no commit of a turn ever waits for it. It is made
of the journal alone, from where it stopped the last time, and can be made again at any time.
"""

import sqlite3
from contextlib import suppress
from pathlib import Path
from sqlite3 import Connection

import msgspec
from msgspec import Struct

from hark.disk.sqlite_file import open_database
from hark.protocol.names import is_background
from hark.protocol.store import Hit, Query, StoreError, StoreUnusable
from hark.store.committer import Committer, CommitThread, closed
from hark.store.database_file import explained
from hark.store.rows import RECORDS
from hark.store.search_text import Phrase, SearchableLine, is_prefix, lines_of, phrases, snippet, words

VERSION = 1  # of the tables, and of how text becomes words: another one means to begin anew
SLICE_ROWS = 200
SLICE_BYTES = 500_000
FORGOTTEN_LINES = 1_000
TABLES = (
    """CREATE TABLE lines (
        session TEXT NOT NULL, turn TEXT NOT NULL, at REAL NOT NULL, who TEXT NOT NULL, text TEXT NOT NULL
    )""",
    "CREATE INDEX lines_of_session ON lines (session)",
    # Words come to it with blanks between them, and whatever is not ASCII is a letter to this tokenizer.
    "CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = 'ascii')",
    "CREATE TABLE mark (store TEXT NOT NULL, journal INTEGER NOT NULL, forgotten INTEGER NOT NULL)",
    "INSERT INTO mark VALUES ('', 0, 0)",
)
_ENDS = """
SELECT id, coalesce((SELECT max(rowid) FROM journal), 0), coalesce((SELECT max(number) FROM forgotten), 0)
FROM identity"""
_FIND = """
SELECT session, turn, at, who, lines.text FROM words JOIN lines ON lines.rowid = words.rowid
WHERE words MATCH ?1 AND (?2 = '' OR session = ?2) AND at >= ?3 AND (?4 = '' OR turn <> ?4)
ORDER BY {} LIMIT ?5"""
_NEWEST = _FIND.format("words.rowid DESC")
_BEST = _FIND.format("rank")


class Mark(Struct, frozen=True):
    """How far the index goes: in which database, the last row of its journal, and the last session forgotten."""

    store: str
    journal: int = 0
    forgotten: int = 0


class IndexBatch(Struct, frozen=True):
    """What comes behind a mark: sessions to forget first, then lines to keep, up to the next mark.

    `is_anew`: the index is not of this database, and all of it goes.
    """

    mark: Mark
    forgotten: tuple[str, ...] = ()
    lines: tuple[tuple[str, SearchableLine], ...] = ()
    is_anew: bool = False


def read_mark(connection: Connection) -> Mark:
    """Return how far the index goes."""
    return Mark(*connection.execute("SELECT store, journal, forgotten FROM mark").fetchone())


def next_piece(journal: Connection, mark: Mark, row_limit: int = SLICE_ROWS) -> IndexBatch:
    """Return what the journal has behind a mark, not more than takes a moment; nothing new leaves the mark as it is."""
    [store, last_row, last_forgotten] = journal.execute(_ENDS).fetchone()
    if store != mark.store or last_forgotten < mark.forgotten:
        return IndexBatch(Mark(store), is_anew=True)
    query = "SELECT number, session, last_row FROM forgotten WHERE number > ? ORDER BY number"
    forgotten = journal.execute(query, (mark.forgotten,)).fetchall()
    # Row numbers above what a deletion left were used again: they are read again. What had them before is forgotten.
    last = min([mark.journal, *(left for _, _, left in forgotten)])
    if last > last_row:
        return IndexBatch(Mark(store), is_anew=True)  # rows are missing that nobody deleted: an older copy was put back
    lines: list[tuple[str, SearchableLine]] = []
    size = 0
    rows = journal.execute(
        "SELECT rowid, session, body FROM journal WHERE rowid > ? ORDER BY rowid LIMIT ?", (last, row_limit)
    )
    for row, session, body in rows:
        last = row
        size += len(body)
        if not is_background(session):
            lines.extend((session, line) for line in _lines(body))
        if size > SLICE_BYTES:
            break
    number = forgotten[-1][0] if forgotten else mark.forgotten
    return IndexBatch(Mark(store, last, number), tuple(session for _, session, _ in forgotten), tuple(lines))


def keep(index: Connection, mark: Mark, piece: IndexBatch) -> None:
    """Take a piece into the index, if it still goes to that mark; else another process was faster."""
    if read_mark(index) != mark:
        return
    if piece.is_anew:
        index.execute("DELETE FROM lines")
        index.execute("INSERT INTO words (words) VALUES ('delete-all')")
    for session in piece.forgotten:
        if not _forget(index, session):
            return  # the mark stays, and so the rest is next
    for session, line in piece.lines:
        row = (session, line.turn, line.at, line.who, line.text)
        added = index.execute("INSERT INTO lines (session, turn, at, who, text) VALUES (?, ?, ?, ?, ?)", row)
        found_by = " ".join(words(line.text))
        index.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (added.lastrowid, found_by))
    new = piece.mark
    index.execute("UPDATE mark SET store = ?, journal = ?, forgotten = ?", (new.store, new.journal, new.forgotten))


def find(index: Connection, query: Query) -> list[Hit]:
    """Return the messages with these words."""
    wanted = phrases(query.words)
    if not wanted or query.limit < 1:
        return []
    terms = (" OR " if query.is_any else " AND ").join(_term(phrase) for phrase in wanted)
    values = (terms, query.session, query.since, query.without_turn, query.limit)
    rows = index.execute(_BEST if query.is_any else _NEWEST, values)
    return [Hit(session, turn, at, who, snippet(text, wanted)) for session, turn, at, who, text in rows]


def _forget(index: Connection, session: str) -> bool:
    """Take a session out, not more of it than takes a moment; True when nothing of it is left."""
    query = "SELECT rowid, text FROM lines WHERE session = ? LIMIT ?"
    rows = index.execute(query, (session, FORGOTTEN_LINES)).fetchall()
    for row, text in rows:
        # An index without the text itself has to be told what to take out.
        index.execute("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (row, " ".join(words(text))))
        index.execute("DELETE FROM lines WHERE rowid = ?", (row,))
    return len(rows) < FORGOTTEN_LINES


def _lines(body: bytes) -> list[SearchableLine]:
    try:
        return lines_of(RECORDS.decode(body))
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        return []  # a record that can't be read is told to whoever opens its session


def _term(phrase: Phrase) -> str:
    # There are no quotation marks in words.
    return f'"{" ".join(phrase)}"{" *" if is_prefix(phrase[-1]) else ""}'


class SqliteSearch:
    """The index has a thread of its own, from the first search on. Turns neither write to it nor wait for it."""

    def __init__(self, journal: Committer, path: Path | None = None) -> None:
        """Read from this journal. The index is the file at `path`, or in memory."""
        self._journal = journal
        self._path = path
        self._index: CommitThread | None = None
        self._is_closed = False

    async def find(self, query: Query) -> list[Hit]:
        """Return the messages with these words. Cancelling leaves the index where it has come to."""
        index = self._opened()
        try:
            return await self._find(query)
        except StoreUnusable:
            if self._path is None:
                raise
            await self._begin_anew(index, self._path)
        return await self._find(query)

    async def forget(self) -> None:
        """Forget the sessions that were deleted; when that fails, the next search does it."""
        if self._index is None and (self._path is None or not self._path.exists()):
            return
        with suppress(StoreError):
            await self._catch_up(row_limit=0)

    async def close(self) -> None:
        """End the thread when it has finished what it does in this moment; bounded by the caller."""
        self._is_closed = True
        if self._index is not None:
            await self._index.close()

    async def _find(self, query: Query) -> list[Hit]:
        await self._catch_up()
        return await self._opened().submit(lambda index: find(index, query))

    async def _catch_up(self, row_limit: int = SLICE_ROWS) -> None:
        """Take into the index what is new in the journal, in small pieces: each is one short transaction."""
        while True:
            mark = await self._opened().submit(read_mark)
            piece = await self._journal.submit(lambda journal, mark=mark: next_piece(journal, mark, row_limit))
            if piece.mark == mark:
                return
            await self._opened().submit(lambda index, mark=mark, piece=piece: keep(index, mark, piece))

    async def _begin_anew(self, broken: CommitThread, path: Path) -> None:
        await broken.close()
        if self._index is broken:  # or else another search was faster
            self._index = None
            remove_index(path)

    def _opened(self) -> CommitThread:
        if self._is_closed:
            raise closed()
        if self._index is None:
            self._index = CommitThread(lambda: connect_index(self._path), limit=1)
        return self._index


def connect_index(path: Path | None) -> sqlite3.Connection:
    """Open the index for writing, or one in memory; one that is damaged or of another version is made anew.

    Raises:
        StoreError: It can't be opened.
    """
    if path is None:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        _make(connection)
        return connection
    with explained(path):
        try:
            return open_database(path, _make, "NORMAL")  # what a power cut takes is made again
        except sqlite3.OperationalError:  # locked, full, no way to it: not a reason to throw it away
            raise
        except sqlite3.DatabaseError:
            remove_index(path)
        return open_database(path, _make, "NORMAL")


def remove_index(path: Path) -> None:
    """Throw the index away. A process that has it open goes on with the old one until it ends.

    Raises:
        StoreError: It can't be removed.
    """
    with explained(path):
        for end in ("", "-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)


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
