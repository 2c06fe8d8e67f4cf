"""The gateway's ledger in a database of its own: what came in, what is owed, what was sent."""

import sqlite3
import time
from pathlib import Path
from typing import Any

import msgspec

from hark.protocol.chat import Address, Incoming, Removed, Rewritten, Written
from hark.protocol.chat_ledger import ChatBinding, PendingIncoming, SentReply
from hark.store.committer import CommitThread
from hark.store.database_file import connect_with

REMEMBERED_SECONDS = 14 * 86_400  # longer than any platform goes on delivering again
_SCHEMA = """
CREATE TABLE IF NOT EXISTS incoming (
    place INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, at REAL NOT NULL, body BLOB
);
CREATE INDEX IF NOT EXISTS incoming_kept ON incoming (place) WHERE body IS NOT NULL;
CREATE TABLE IF NOT EXISTS lines (
    address TEXT PRIMARY KEY, session TEXT NOT NULL, delivered INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS lines_session ON lines (session);
CREATE TABLE IF NOT EXISTS sent (
    address TEXT NOT NULL, key TEXT NOT NULL, message TEXT NOT NULL DEFAULT '', at REAL NOT NULL,
    PRIMARY KEY (address, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS offers (
    address TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (address, key)
) WITHOUT ROWID;
"""
_INCOMING = msgspec.json.Decoder(Incoming)
_ADDRESS = msgspec.json.Decoder(Address)
_LINES = "SELECT address, session, delivered FROM lines"


class SqliteChatLedger:
    """A ChatLedger in a file. Commits are gathered, and durable when they are answered."""

    def __init__(self, path: Path) -> None:
        """Open it with the first operation; an error of it is every operation's."""
        self._thread = CommitThread(lambda: connect_with(path, _SCHEMA))

    async def close(self) -> None:
        """Finish what was begun."""
        await self._thread.close()

    async def accept(self, incoming: Incoming) -> PendingIncoming | None:
        """Keep what came in; None when the same was kept before."""
        name = _name(incoming)
        body = msgspec.json.encode(incoming)

        def insert(connection: sqlite3.Connection) -> PendingIncoming | None:
            if isinstance(incoming, Written) and _was_removed(connection, incoming):
                return None  # its deletion came first
            sql = "INSERT INTO incoming (name, at, body) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING"
            cursor = connection.execute(sql, (name, time.time(), body))
            return PendingIncoming(cursor.lastrowid or 0, incoming) if cursor.rowcount == 1 else None

        return await self._thread.submit(insert)

    async def kept(self, surface: str, address: Address | None = None) -> list[PendingIncoming]:
        """Return what of a surface, or of an address on it, is not dealt with yet, in the order of arrival."""

        def read(connection: sqlite3.Connection) -> list[PendingIncoming]:
            rows = connection.execute("SELECT place, body FROM incoming WHERE body IS NOT NULL ORDER BY place")
            found = [PendingIncoming(place, _INCOMING.decode(body), is_again=True) for place, body in rows]
            of_surface = [kept for kept in found if kept.incoming.address.surface == surface]
            return [kept for kept in of_surface if address in (None, kept.incoming.address)]

        return await self._thread.submit(read)

    async def done(self, *places: int) -> None:
        """They are dealt with, all at once; their names are remembered for longer than they may be delivered again."""

        def finish(connection: sqlite3.Connection) -> None:
            sql = "UPDATE incoming SET body = NULL WHERE place = ?"
            connection.executemany(sql, [(place,) for place in places])
            old = time.time() - REMEMBERED_SECONDS
            if any(place % 1000 == 0 for place in places):
                connection.execute("DELETE FROM incoming WHERE body IS NULL AND at < ?", (old,))
                connection.execute("DELETE FROM sent WHERE at < ?", (old,))
                connection.execute("DELETE FROM offers WHERE at < ?", (old,))

        await self._thread.submit(finish)

    async def line(self, address: Address, session: str) -> ChatBinding:
        """Return what is known of an address; made when new."""

        def find(connection: sqlite3.Connection) -> ChatBinding:
            key = _key(address)
            sql = "INSERT INTO lines (address, session) VALUES (?, ?) ON CONFLICT (address) DO NOTHING"
            connection.execute(sql, (key, session))
            row = connection.execute(f"{_LINES} WHERE address = ?", (key,)).fetchone()
            return _line(row)

        return await self._thread.submit(find)

    async def lines(self, surface: str) -> list[ChatBinding]:
        """Return all addresses of a surface that were ever talked at."""

        def read(connection: sqlite3.Connection) -> list[ChatBinding]:
            lines = [_line(row) for row in connection.execute(_LINES)]
            return [line for line in lines if line.address.surface == surface]

        return await self._thread.submit(read)

    async def line_of(self, session: str) -> ChatBinding | None:
        """Return the address that leads to a session."""
        row = await self._run(f"{_LINES} WHERE session = ?", session)
        return _line(row) if row is not None else None

    async def delivered(self, address: Address, turn: int) -> None:
        """The reply of this turn, and of all before it, was delivered."""
        await self._run("UPDATE lines SET delivered = max(delivered, ?) WHERE address = ?", turn, _key(address))

    async def forget(self, address: Address) -> None:
        """The session behind it was deleted: what was delivered of it counts no more."""

        def forget(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE lines SET delivered = 0 WHERE address = ?", (_key(address),))
            connection.execute("DELETE FROM sent WHERE address = ?", (_key(address),))

        await self._thread.submit(forget)

    async def sending(self, address: Address, key: str) -> SentReply | None:
        """Note that a message is about to be sent; return what is known of an earlier try."""

        def note(connection: sqlite3.Connection) -> SentReply | None:
            known = _sent(connection, address, key)
            if known is None:
                sql = "INSERT INTO sent (address, key, at) VALUES (?, ?, ?)"
                connection.execute(sql, (_key(address), key, time.time()))
            return known

        return await self._thread.submit(note)

    async def find(self, address: Address, key: str) -> SentReply | None:
        """Return what is known of a message under that key."""
        return await self._thread.submit(lambda connection: _sent(connection, address, key))

    async def sent(self, address: Address, key: str, message: str) -> None:
        """The platform took it under this id."""
        await self._run("UPDATE sent SET message = ? WHERE address = ? AND key = ?", message, _key(address), key)

    async def offer(self, address: Address, key: str, text: str) -> None:
        """Keep what a button of ours stands for."""
        sql = "INSERT OR REPLACE INTO offers (address, key, text, at) VALUES (?, ?, ?, ?)"
        await self._run(sql, _key(address), key, text, time.time())

    async def offered(self, address: Address, key: str) -> str:
        """Return what a button of ours stands for; "" when it is not known any more."""
        row = await self._run("SELECT text FROM offers WHERE address = ? AND key = ?", _key(address), key)
        return row[0] if row is not None else ""

    async def _run(self, sql: str, *values: object) -> Any:
        """Execute one statement and return its first row; None when it has none."""
        return await self._thread.submit(lambda connection: connection.execute(sql, values).fetchone())


def _name(incoming: Incoming) -> str:
    """Return what makes a delivery the same when it comes again: its kind, place, id, and of an edit its text."""
    text = f"{incoming.at}|{incoming.text}" if isinstance(incoming, Rewritten) else ""
    return f"{incoming.__struct_config__.tag}|{_key(incoming.address)}|{incoming.id}|{text}"


def _key(address: Address) -> str:
    return msgspec.json.encode(address).decode()


def _was_removed(connection: sqlite3.Connection, message: Written) -> bool:
    name = _name(Removed(message.id, message.address))
    return connection.execute("SELECT 1 FROM incoming WHERE name = ?", (name,)).fetchone() is not None


def _sent(connection: sqlite3.Connection, address: Address, key: str) -> SentReply | None:
    sql = "SELECT message, at FROM sent WHERE address = ? AND key = ?"
    row = connection.execute(sql, (_key(address), key)).fetchone()
    return SentReply(key, *row) if row is not None else None


def _line(row: tuple[str, str, int]) -> ChatBinding:
    return ChatBinding(_ADDRESS.decode(row[0]), row[1], row[2])
