"""Search in the sessions of a SQLite store: the index catches up when somebody searches, never before."""

import sqlite3
from contextlib import suppress
from pathlib import Path

from hark.disk.sqlite_file import open_database
from hark.protocol.store import Hit, Query, StoreError, StoreUnusable
from hark.store import index_rows
from hark.store.commit_thread import CommitThread
from hark.store.committer import Committer, closed
from hark.store.failures import explained
from hark.store.index_rows import TABLES, VERSION


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
        return await self._opened().submit(lambda index: index_rows.find(index, query))

    async def _catch_up(self, row_limit: int = index_rows.SLICE_ROWS) -> None:
        """Take into the index what is new in the journal, in small pieces: each is one short transaction."""
        while True:
            mark = await self._opened().submit(index_rows.read_mark)
            piece = await self._journal.submit(
                lambda journal, mark=mark: index_rows.next_piece(journal, mark, row_limit)
            )
            if piece.mark == mark:
                return
            await self._opened().submit(lambda index, mark=mark, piece=piece: index_rows.keep(index, mark, piece))

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
