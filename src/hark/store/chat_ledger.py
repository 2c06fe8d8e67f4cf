"""The gateway's ledger in a database of its own: what came in, what is owed, what was sent."""

import sqlite3
import time
from pathlib import Path

import msgspec

from hark.protocol.chat import Address, Incoming, Rewritten
from hark.protocol.chat_ledger import Kept, Line, Sent
from hark.protocol.store import StoreError
from hark.store.commit_thread import CommitThread
from hark.store.failures import explain

REMEMBERED_SECONDS = 14 * 86_400  # longer than any platform goes on delivering again
_SCHEMA = """
CREATE TABLE IF NOT EXISTS incoming (
    place INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, at REAL NOT NULL, body BLOB
);
CREATE INDEX IF NOT EXISTS incoming_kept ON incoming (place) WHERE body IS NOT NULL;
CREATE TABLE IF NOT EXISTS lines (
    address TEXT PRIMARY KEY, session TEXT NOT NULL, delivered INTEGER NOT NULL DEFAULT 0,
    is_owed INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sent (
    address TEXT NOT NULL, key TEXT NOT NULL, message TEXT NOT NULL DEFAULT '', at REAL NOT NULL,
    PRIMARY KEY (address, key)
) WITHOUT ROWID;
"""
_INCOMING = msgspec.json.Decoder(Incoming)
_ADDRESS = msgspec.json.Decoder(Address)


class SqliteChatLedger:
    """A ChatLedger in a file. Commits are gathered, and durable when they are answered."""

    def __init__(self, path: Path) -> None:
        """Open it with the first operation; an error of it is every operation's."""
        self._thread = CommitThread(lambda: _connect(path))

    async def close(self) -> None:
        """Finish what was begun."""
        await self._thread.close()

    async def accept(self, incoming: Incoming) -> Kept | None:
        """Keep what came in; None when the same was kept before."""
        name = _name(incoming)
        body = msgspec.json.encode(incoming)

        def insert(connection: sqlite3.Connection) -> Kept | None:
            sql = "INSERT INTO incoming (name, at, body) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING"
            cursor = connection.execute(sql, (name, time.time(), body))
            return Kept(cursor.lastrowid or 0, incoming) if cursor.rowcount == 1 else None

        return await self._thread.submit(insert)

    async def kept(self) -> list[Kept]:
        """Return what is not dealt with yet, in the order of arrival."""

        def read(connection: sqlite3.Connection) -> list[Kept]:
            rows = connection.execute("SELECT place, body FROM incoming WHERE body IS NOT NULL ORDER BY place")
            return [Kept(place, _INCOMING.decode(body)) for place, body in rows]

        return await self._thread.submit(read)

    async def done(self, place: int) -> None:
        """It is dealt with; its name is remembered for longer than it may be delivered again."""

        def finish(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE incoming SET body = NULL WHERE place = ?", (place,))
            old = time.time() - REMEMBERED_SECONDS
            if place % 1000 == 0:
                connection.execute("DELETE FROM incoming WHERE body IS NULL AND at < ?", (old,))
                connection.execute("DELETE FROM sent WHERE at < ?", (old,))

        await self._thread.submit(finish)

    async def line(self, address: Address, session: str) -> Line:
        """Return what is known of an address; made when new."""

        def find(connection: sqlite3.Connection) -> Line:
            key = _key(address)
            sql = "INSERT INTO lines (address, session) VALUES (?, ?) ON CONFLICT (address) DO NOTHING"
            connection.execute(sql, (key, session))
            sql = "SELECT address, session, delivered, is_owed FROM lines WHERE address = ?"
            return _line(connection.execute(sql, (key,)).fetchone())

        return await self._thread.submit(find)

    async def owed(self) -> list[Line]:
        """Return the addresses to which replies may be owed."""

        def read(connection: sqlite3.Connection) -> list[Line]:
            sql = "SELECT address, session, delivered, is_owed FROM lines WHERE is_owed"
            return [_line(row) for row in connection.execute(sql)]

        return await self._thread.submit(read)

    async def owe(self, address: Address) -> None:
        """From now on replies may be owed there."""
        await self._run("UPDATE lines SET is_owed = 1 WHERE address = ?", _key(address))

    async def delivered(self, address: Address, turn: int, *, is_all: bool) -> None:
        """The reply of this turn, and of all before it, was delivered."""
        sql = "UPDATE lines SET delivered = max(delivered, ?), is_owed = ? WHERE address = ?"
        await self._run(sql, turn, int(not is_all), _key(address))

    async def sending(self, address: Address, key: str) -> Sent | None:
        """Note that a message is about to be sent; return what is known of an earlier try."""

        def note(connection: sqlite3.Connection) -> Sent | None:
            where = _key(address)
            row = connection.execute("SELECT message FROM sent WHERE address = ? AND key = ?", (where, key)).fetchone()
            if row is not None:
                return Sent(key, row[0])
            connection.execute("INSERT INTO sent (address, key, at) VALUES (?, ?, ?)", (where, key, time.time()))
            return None

        return await self._thread.submit(note)

    async def sent(self, address: Address, key: str, message: str) -> None:
        """The platform took it under this id."""
        await self._run("UPDATE sent SET message = ? WHERE address = ? AND key = ?", message, _key(address), key)

    async def _run(self, sql: str, *values: object) -> None:
        def run(connection: sqlite3.Connection) -> None:
            connection.execute(sql, values)

        await self._thread.submit(run)


def _connect(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        connection = sqlite3.connect(path, isolation_level=None, timeout=5.0)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(_SCHEMA)
    except sqlite3.Error as error:
        raise explain(error, str(path)) from error
    except OSError as error:
        raise StoreError(f"{path} can't be opened: {error}. Check its folder.") from error
    return connection


def _name(incoming: Incoming) -> str:
    """Return what makes a delivery the same when it comes again: its kind, place, id, and of an edit its text."""
    text = f"{incoming.at}|{incoming.text}" if isinstance(incoming, Rewritten) else ""
    return f"{type(incoming).__name__}|{_key(incoming.address)}|{incoming.id}|{text}"


def _key(address: Address) -> str:
    return msgspec.json.encode(address).decode()


def _line(row: tuple[str, str, int, int]) -> Line:
    return Line(_ADDRESS.decode(row[0]), row[1], row[2], bool(row[3]))
