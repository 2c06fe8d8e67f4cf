"""The chat ledger in its own SQLite database: incoming events, bindings, sent messages and button actions."""

import sqlite3
import time
from pathlib import Path
from typing import Any

import msgspec

from hark.protocol.chat import Address, IncomingEvent, IncomingMessage, MessageDeleted, MessageEdited
from hark.protocol.chat_ledger import ChatBinding, PendingIncoming, SentReply
from hark.store.commit_thread import CommitThread
from hark.store.database_file import connect_with_schema

RETENTION_SECONDS = 14 * 86_400  # longer than any platform keeps redelivering
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
_INCOMING = msgspec.json.Decoder(IncomingEvent)
_ADDRESS = msgspec.json.Decoder(Address)
_SELECT_BINDINGS = "SELECT address, session, delivered FROM lines"


class SqliteChatLedger:
    """A ChatLedger in a file. Concurrent changes share one commit, and are durable when their method returns."""

    def __init__(self, path: Path) -> None:
        """Open the file on the first operation. If it can't be opened, every operation raises that error."""
        self._thread = CommitThread(lambda: connect_with_schema(path, _SCHEMA))

    async def close(self) -> None:
        """Finish the submitted operations and close the database."""
        await self._thread.close()

    async def accept(self, incoming: IncomingEvent) -> PendingIncoming | None:
        """Store an incoming event. Return None if the same event was stored before."""
        name = _event_key(incoming)
        body = msgspec.json.encode(incoming)

        def insert(connection: sqlite3.Connection) -> PendingIncoming | None:
            if isinstance(incoming, IncomingMessage) and _was_deleted(connection, incoming):
                return None  # the message was deleted before it arrived
            sql = "INSERT INTO incoming (name, at, body) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING"
            cursor = connection.execute(sql, (name, time.time(), body))
            return PendingIncoming(cursor.lastrowid or 0, incoming) if cursor.rowcount == 1 else None

        return await self._thread.submit(insert)

    async def pending(self, surface: str, address: Address | None = None) -> list[PendingIncoming]:
        """Return the unhandled events of a surface, or of one address on it, in order of arrival."""

        def read(connection: sqlite3.Connection) -> list[PendingIncoming]:
            rows = connection.execute("SELECT place, body FROM incoming WHERE body IS NOT NULL ORDER BY place")
            events = [PendingIncoming(position, _INCOMING.decode(body), is_again=True) for position, body in rows]
            of_surface = [event for event in events if event.incoming.address.surface == surface]
            return [event for event in of_surface if address in (None, event.incoming.address)]

        return await self._thread.submit(read)

    async def mark_done(self, *positions: int) -> None:
        """Mark events as handled, in one transaction. Their ids outlast the platforms' redelivery period."""

        def finish(connection: sqlite3.Connection) -> None:
            sql = "UPDATE incoming SET body = NULL WHERE place = ?"
            connection.executemany(sql, [(place,) for place in positions])
            oldest_kept_at = time.time() - RETENTION_SECONDS
            if any(place % 1000 == 0 for place in positions):
                connection.execute("DELETE FROM incoming WHERE body IS NULL AND at < ?", (oldest_kept_at,))
                connection.execute("DELETE FROM sent WHERE at < ?", (oldest_kept_at,))
                connection.execute("DELETE FROM offers WHERE at < ?", (oldest_kept_at,))

        await self._thread.submit(finish)

    async def binding(self, address: Address, session: str) -> ChatBinding:
        """Return the binding of an address. A new address is bound to `session`."""

        def find(connection: sqlite3.Connection) -> ChatBinding:
            key = _address_key(address)
            sql = "INSERT INTO lines (address, session) VALUES (?, ?) ON CONFLICT (address) DO NOTHING"
            connection.execute(sql, (key, session))
            row = connection.execute(f"{_SELECT_BINDINGS} WHERE address = ?", (key,)).fetchone()
            return _to_binding(row)

        return await self._thread.submit(find)

    async def bindings(self, surface: str) -> list[ChatBinding]:
        """Return the bindings of all addresses of a surface that were ever used."""

        def read(connection: sqlite3.Connection) -> list[ChatBinding]:
            bindings = [_to_binding(row) for row in connection.execute(_SELECT_BINDINGS)]
            return [binding for binding in bindings if binding.address.surface == surface]

        return await self._thread.submit(read)

    async def binding_of_session(self, session: str) -> ChatBinding | None:
        """Return the binding that contains this session, or None."""
        row = await self._execute(f"{_SELECT_BINDINGS} WHERE session = ?", session)
        return _to_binding(row) if row is not None else None

    async def mark_delivered(self, address: Address, turn: int) -> None:
        """Record that the replies of this turn and all earlier turns were delivered."""
        sql = "UPDATE lines SET delivered = max(delivered, ?) WHERE address = ?"
        await self._execute(sql, turn, _address_key(address))

    async def reset_delivered(self, address: Address) -> None:
        """Reset the delivered turn of an address, after its session was deleted."""

        def reset(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE lines SET delivered = 0 WHERE address = ?", (_address_key(address),))
            connection.execute("DELETE FROM sent WHERE address = ?", (_address_key(address),))

        await self._thread.submit(reset)

    async def begin_send(self, address: Address, key: str) -> SentReply | None:
        """Record that a message is about to be sent. Return the earlier attempt under the same key, if any."""

        def insert(connection: sqlite3.Connection) -> SentReply | None:
            earlier = _find_sent(connection, address, key)
            if earlier is None:
                sql = "INSERT INTO sent (address, key, at) VALUES (?, ?, ?)"
                connection.execute(sql, (_address_key(address), key, time.time()))
            return earlier

        return await self._thread.submit(insert)

    async def find_sent(self, address: Address, key: str) -> SentReply | None:
        """Return the send attempt recorded under that key, or None."""
        return await self._thread.submit(lambda connection: _find_sent(connection, address, key))

    async def is_sent(self, address: Address, key_prefix: str, message: str) -> bool:
        """Return whether the message with the platform's id `message` was sent under a key with this prefix."""
        sql = "SELECT 1 FROM sent WHERE address = ? AND key BETWEEN ? AND ? AND message = ?"
        keys = key_prefix, f"{key_prefix}\U0010ffff"
        return await self._execute(sql, _address_key(address), *keys, message) is not None

    async def mark_sent(self, address: Address, key: str, message: str) -> None:
        """Record that the platform accepted the message and gave it the id `message`."""
        sql = "UPDATE sent SET message = ? WHERE address = ? AND key = ?"
        await self._execute(sql, message, _address_key(address), key)

    async def save_action(self, address: Address, key: str, text: str) -> None:
        """Store the action text behind one of our buttons."""
        sql = "INSERT OR REPLACE INTO offers (address, key, text, at) VALUES (?, ?, ?, ?)"
        await self._execute(sql, _address_key(address), key, text, time.time())

    async def find_action(self, address: Address, key: str) -> str:
        """Return the action text behind one of our buttons, or "" if it is no longer stored."""
        row = await self._execute("SELECT text FROM offers WHERE address = ? AND key = ?", _address_key(address), key)
        return row[0] if row is not None else ""

    async def _execute(self, sql: str, *values: object) -> Any:
        """Execute one statement and return its first row, or None if it has no rows."""
        return await self._thread.submit(lambda connection: connection.execute(sql, values).fetchone())


def _event_key(incoming: IncomingEvent) -> str:
    """Return a key that is the same for a redelivered event: its type, address and id, and for an edit its text."""
    text = f"{incoming.at}|{incoming.text}" if isinstance(incoming, MessageEdited) else ""
    return f"{incoming.__struct_config__.tag}|{_address_key(incoming.address)}|{incoming.id}|{text}"


def _address_key(address: Address) -> str:
    return msgspec.json.encode(address).decode()


def _was_deleted(connection: sqlite3.Connection, message: IncomingMessage) -> bool:
    name = _event_key(MessageDeleted(message.id, message.address))
    return connection.execute("SELECT 1 FROM incoming WHERE name = ?", (name,)).fetchone() is not None


def _find_sent(connection: sqlite3.Connection, address: Address, key: str) -> SentReply | None:
    sql = "SELECT message, at FROM sent WHERE address = ? AND key = ?"
    row = connection.execute(sql, (_address_key(address), key)).fetchone()
    return SentReply(key, *row) if row is not None else None


def _to_binding(row: tuple[str, str, int]) -> ChatBinding:
    return ChatBinding(_ADDRESS.decode(row[0]), row[1], row[2])
