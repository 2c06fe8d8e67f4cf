"""The SQL of inbox, journal and leases: plain functions on a connection, each inside its caller's transaction.

A function checks first and writes after, so that one which refuses has written nothing.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from sqlite3 import Connection
from typing import Any, TypeVar

import msgspec

from hark.protocol.commands import Command
from hark.protocol.records import AnyRecord
from hark.protocol.store import Accepted, Entry, JournalConflict, Lease, LeaseLost, SessionLine, StoreUnusable, Summary

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
COMMANDS: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
RECORDS: msgspec.json.Decoder[AnyRecord] = msgspec.json.Decoder(AnyRecord)


def encode(value: Command | AnyRecord) -> bytes:
    """Return the body. Half a surrogate pair, which no encoding can keep, becomes a question mark."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
        return text.encode(errors="replace")


def decode(decoder: msgspec.json.Decoder[T], rows: Iterable[tuple[int, bytes]], where: str) -> list[tuple[int, T]]:
    """Return each row's number with what its body says.

    Raises:
        StoreUnusable: A body can't be read; the text names `where` and the row's number.
    """
    decoded: list[tuple[int, T]] = []
    body: Any
    for seq, body in rows:
        try:
            decoded.append((seq, decoder.decode(body)))
        except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
            raise StoreUnusable(
                f"Entry {seq} of the {where} can't be read ({error}). The database was not changed. Upgrade Hark if a "
                "newer one wrote it; else restore a backup, or delete this session."
            ) from error
    return decoded


# What is appended comes as one JSON text: a line [session, owner, epoch, expected, length, ...] for each session.
_LINES = """
(SELECT json_extract(value, '$[0]') AS session, json_extract(value, '$[1]') AS owner,
    json_extract(value, '$[2]') AS epoch, json_extract(value, '$[3]') AS expected,
    json_extract(value, '$[4]') AS length, json_extract(value, '$[5]') AS cursor,
    json_extract(value, '$[6]') AS is_open, json_extract(value, '$[7]') AS is_waiting,
    json_extract(value, '$[8]') AS turns, json_extract(value, '$[9]') AS title,
    json_extract(value, '$[10]') AS updated_at FROM json_each(?1)) AS line"""
_FITTING = f"""
SELECT count(DISTINCT session) FROM {_LINES} JOIN leases USING (session, owner, epoch)
WHERE coalesce((SELECT length FROM sessions WHERE sessions.session = line.session), 0) = expected"""  # noqa: S608 ours
_ADVANCE_ALL = f"""
INSERT OR REPLACE INTO sessions (session, length, cursor, is_open, is_waiting, turns, title, updated_at)
SELECT session, length, cursor, is_open, is_waiting, turns, title, updated_at FROM {_LINES}"""  # noqa: S608 ours
_INSERT = """
INSERT INTO journal (session, seq, body)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), CAST(json_extract(value, '$[2]') AS BLOB)
FROM json_each(?1) ORDER BY key"""


class Append:
    """Records for the end of one journal: an operation that is done together with others of its kind.

    Each statement of a thread gives the interpreter's lock away and has to win it back from a busy loop, which takes
    longer than the statement. A hundred replies that stream are kept in one fight instead of two hundred.
    """

    __slots__ = ("bodies", "expected", "lease", "summary")

    def __init__(self, lease: Lease, expected: int, records: Sequence[AnyRecord], summary: Summary) -> None:
        self.lease = lease
        self.expected = expected
        self.bodies = [encode(record) for record in records]
        self.summary = summary

    def __call__(self, connection: Connection) -> None:
        """Add the records and renew the session's line, if the lease holds and the length is as expected.

        Raises:
            LeaseLost: The lease is another's by now.
            JournalConflict: The journal has more or fewer records.
        """
        session, owner, epoch, *_ = line = self.line
        if connection.execute(_ADVANCE, line).rowcount == 0:
            if connection.execute(_OWNED, (session, owner, epoch)).fetchone() is None:
                raise lease_lost(self.lease.session)
            raise journal_conflict(self.lease.session, self.expected)
        insert = "INSERT INTO journal (session, seq, body) VALUES (?, ?, ?)"
        connection.executemany(
            insert, [(session, seq, body) for seq, body in enumerate(self.bodies, self.expected + 1)]
        )

    @staticmethod
    def together(connection: Connection, appends: "Sequence[Append]") -> bool:
        """Do them all; or nothing, and return False, if one of them must be refused or two are of one session."""
        # Both before anything is written: words that can't be encoded raise here.
        lines = _encoder.encode([append.line for append in appends]).decode()
        records = _encoder.encode([row for append in appends for row in append.rows]).decode()
        [fitting] = connection.execute(_FITTING, (lines,)).fetchone()
        if fitting != len(appends):
            return False
        connection.execute(_ADVANCE_ALL, (lines,))
        connection.execute(_INSERT, (records,))
        return True

    @property
    def line(self) -> tuple[object, ...]:
        """The session's line, and what must hold for it to be written."""
        lease, s = self.lease, self.summary
        known = (lease.session, lease.owner, lease.epoch, self.expected, self.expected + len(self.bodies))
        return (*known, s.cursor, s.is_open, s.is_waiting, s.turns, s.title, s.updated_at)

    @property
    def rows(self) -> list[tuple[str, int, str]]:
        """The journal's new rows."""
        return [(self.lease.session, seq, body.decode()) for seq, body in enumerate(self.bodies, self.expected + 1)]


_PUT = """
INSERT INTO inbox (session, seq, id, body)
VALUES (?1, (SELECT coalesce(max(seq), 0) + 1 FROM inbox WHERE session = ?1), ?2, ?3)
ON CONFLICT (session, id) DO NOTHING RETURNING seq"""

# From session to session by the index, so that the bodies of a long inbox are not read.
_UNREAD = """
WITH RECURSIVE known (session) AS (
    SELECT min(session) FROM inbox
    UNION ALL
    SELECT (SELECT min(session) FROM inbox WHERE session > known.session) FROM known WHERE known.session IS NOT NULL
)
SELECT known.session FROM known LEFT JOIN sessions USING (session)
WHERE (SELECT max(seq) FROM inbox WHERE inbox.session = known.session) > coalesce(cursor, 0)"""
_UNFINISHED = (
    _UNREAD + " UNION SELECT session FROM sessions WHERE is_open OR is_waiting ORDER BY 1"  # noqa: S608 no value is in it
)

# The lease, the length and the new line in one statement: it changes no row unless both hold.
_ADVANCE = """
INSERT INTO sessions (session, length, cursor, is_open, is_waiting, turns, title, updated_at)
SELECT ?1, ?5, ?6, ?7, ?8, ?9, ?10, ?11
WHERE EXISTS (SELECT 1 FROM leases WHERE session = ?1 AND owner = ?2 AND epoch = ?3)
AND coalesce((SELECT length FROM sessions WHERE session = ?1), 0) = ?4
ON CONFLICT (session) DO UPDATE SET length = excluded.length, cursor = excluded.cursor, is_open = excluded.is_open,
    is_waiting = excluded.is_waiting, turns = excluded.turns, title = excluded.title,
    updated_at = excluded.updated_at"""

_FORGOTTEN = "INSERT INTO forgotten (session, last_row) SELECT ?, coalesce(max(rowid), 0) FROM journal"
_OWNED = "SELECT 1 FROM leases WHERE session = ? AND owner = ? AND epoch = ?"
_HOLDER = "SELECT owner, epoch, expires_at FROM leases LEFT JOIN owners USING (owner) WHERE session = ?"


def put(connection: Connection, session: str, command: str, body: bytes) -> Accepted:
    """Add a command to the inbox, or find it there by its id."""
    row = connection.execute(_PUT, (session, command, body)).fetchall()
    if row:
        return Accepted(row[0][0], is_new=True)
    found = connection.execute("SELECT seq FROM inbox WHERE session = ? AND id = ?", (session, command))
    return Accepted(found.fetchone()[0], is_new=False)


def after(connection: Connection, session: str, seq: int) -> list[Entry]:
    """Return the inbox's entries behind `seq`."""
    rows = connection.execute("SELECT seq, body FROM inbox WHERE session = ? AND seq > ? ORDER BY seq", (session, seq))
    return [Entry(seq, command) for seq, command in decode(COMMANDS, rows, f"inbox of session {session!r}")]


def unread(connection: Connection) -> list[str]:
    """Return the sessions with entries behind their cursor."""
    return [session for (session,) in connection.execute(_UNREAD)]


def unfinished(connection: Connection) -> list[str]:
    """Return the sessions that have work."""
    return [session for (session,) in connection.execute(_UNFINISHED)]


def read(connection: Connection, session: str, after: int) -> list[AnyRecord]:
    """Return the journal's records behind the first `after`."""
    query = "SELECT seq, body FROM journal WHERE session = ? AND seq > ? ORDER BY seq"
    rows = connection.execute(query, (session, after))
    return [record for _, record in decode(RECORDS, rows, f"journal of session {session!r}")]


def sessions(connection: Connection) -> list[SessionLine]:
    """Return all sessions, the last changed first."""
    rows = connection.execute(
        "SELECT session, cursor, is_open, is_waiting, turns, title, updated_at FROM sessions "
        "ORDER BY updated_at DESC, session"
    )
    return [
        SessionLine(session, Summary(cursor, bool(is_open), bool(is_waiting), turns, title, updated_at))
        for session, cursor, is_open, is_waiting, turns, title, updated_at in rows
    ]


def delete(connection: Connection, session: str) -> bool:
    """Forget a session; whoever owned it loses its lease."""
    forgotten = 0
    for table in ("inbox", "journal", "sessions"):
        forgotten += connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,)).rowcount  # noqa: S608
    connection.execute("UPDATE leases SET owner = '' WHERE session = ?", (session,))
    if forgotten:
        connection.execute(_FORGOTTEN, (session,))
    return forgotten > 0


def beat(connection: Connection, owner: str, expires_at: float) -> None:
    """Say until when an owner is believed to live."""
    connection.execute("INSERT OR REPLACE INTO owners (owner, expires_at) VALUES (?, ?)", (owner, expires_at))


def acquire(
    connection: Connection, session: str, owner: str, now: float, is_alive: Callable[[str], bool]
) -> Lease | None:
    """Give a session to an owner with the next epoch, unless another that lives has it."""
    row = connection.execute(_HOLDER, (session,)).fetchone()
    if row is None:
        connection.execute("INSERT INTO leases (session, owner, epoch) VALUES (?, ?, 1)", (session, owner))
        return Lease(session, owner, 1)
    holder, epoch, _ = row
    if holder != owner and is_owned(connection, session, now, is_alive):
        return None
    connection.execute("UPDATE leases SET owner = ?, epoch = ? WHERE session = ?", (owner, epoch + 1, session))
    return Lease(session, owner, epoch + 1)


def is_owned(connection: Connection, session: str, now: float, is_alive: Callable[[str], bool]) -> bool:
    """Tell whether an owner that lives has a session."""
    row = connection.execute(_HOLDER, (session,)).fetchone()
    if row is None:
        return False
    holder, _, expires_at = row
    return expires_at is not None and expires_at > now and is_alive(holder)


def release(connection: Connection, lease: Lease) -> None:
    """Take the owner from a lease, if it is still this one; its epoch stays."""
    query = "UPDATE leases SET owner = '' WHERE session = ? AND owner = ? AND epoch = ?"
    connection.execute(query, (lease.session, lease.owner, lease.epoch))


def sweep_owners(connection: Connection, now: float) -> None:
    """Forget the owners that are believed dead; a lease of an unknown owner is free."""
    connection.execute("DELETE FROM owners WHERE expires_at <= ?", (now,))


def leave(connection: Connection, owner: str) -> None:
    """Give up all that an owner has."""
    connection.execute("UPDATE leases SET owner = '' WHERE owner = ?", (owner,))
    connection.execute("DELETE FROM owners WHERE owner = ?", (owner,))


def lease_lost(session: str) -> LeaseLost:
    """Return the error for a write under a lease that is another's by now."""
    return LeaseLost(f"Session {session!r} is owned by another process now; this one must not write to it again.")


def journal_conflict(session: str, expected: int) -> JournalConflict:
    """Return the error for a write behind an end that is not the end."""
    return JournalConflict(f"The journal of session {session!r} does not have {expected} records. Nothing was written.")
