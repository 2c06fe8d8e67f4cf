"""The SQL of inbox, journal and leases, as functions on a connection, inside the caller's transaction.

A function checks first and then writes, so a function that raises has written nothing.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from sqlite3 import Connection
from typing import Any, TypeVar

import msgspec

from hark.protocol.commands import Command
from hark.protocol.records import AnyRecord
from hark.protocol.store import (
    InboxEntry,
    JournalConflict,
    Lease,
    LeaseLost,
    PutResult,
    SessionListEntry,
    SessionSummary,
    StoreUnusable,
)

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
COMMAND_DECODER: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
RECORD_DECODER: msgspec.json.Decoder[AnyRecord] = msgspec.json.Decoder(AnyRecord)


def encode_body(value: Command | AnyRecord) -> bytes:
    """Return a command or record as JSON. Unpaired surrogates, which can't be encoded, become question marks."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
        return text.encode(errors="replace")


def decode_rows(
    decoder: msgspec.json.Decoder[T], rows: Iterable[tuple[int, bytes]], source: str
) -> list[tuple[int, T]]:
    """Return each row's number with its decoded body.

    Raises:
        StoreUnusable: A body can't be decoded. The text names `source` and the row's number.
    """
    decoded: list[tuple[int, T]] = []
    body: Any
    for seq, body in rows:
        try:
            decoded.append((seq, decoder.decode(body)))
        except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
            raise StoreUnusable(
                f"Entry {seq} of the {source} can't be read ({error}). The database was not changed. Upgrade Hark if a "
                "newer version wrote it. Otherwise restore a backup, or delete this session."
            ) from error
    return decoded


# Appends are passed as one JSON text, with a row [session, owner, epoch, expected, length, ...] for each session.
_SESSION_ROWS = """
(SELECT json_extract(value, '$[0]') AS session, json_extract(value, '$[1]') AS owner,
    json_extract(value, '$[2]') AS epoch, json_extract(value, '$[3]') AS expected,
    json_extract(value, '$[4]') AS length, json_extract(value, '$[5]') AS cursor,
    json_extract(value, '$[6]') AS is_open, json_extract(value, '$[7]') AS is_waiting,
    json_extract(value, '$[8]') AS turns, json_extract(value, '$[9]') AS title,
    json_extract(value, '$[10]') AS updated_at FROM json_each(?1)) AS line"""
_COUNT_VALID = f"""
SELECT count(DISTINCT session) FROM {_SESSION_ROWS} JOIN leases USING (session, owner, epoch)
WHERE coalesce((SELECT length FROM sessions WHERE sessions.session = line.session), 0) = expected"""  # noqa: S608 ours
_UPDATE_SESSIONS = f"""
INSERT OR REPLACE INTO sessions (session, length, cursor, is_open, is_waiting, turns, title, updated_at)
SELECT session, length, cursor, is_open, is_waiting, turns, title, updated_at FROM {_SESSION_ROWS}"""  # noqa: S608 ours
_INSERT_RECORDS = """
INSERT INTO journal (session, seq, body)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), CAST(json_extract(value, '$[2]') AS BLOB)
FROM json_each(?1) ORDER BY key"""


class AppendOperation:
    """Appends records to one journal. Several appends can be executed together.

    Each statement in a thread releases the interpreter lock, and regaining it from a busy loop takes longer than the
    statement itself. Executed together, a hundred appends need the lock once instead of two hundred times.
    """

    __slots__ = ("bodies", "expected", "lease", "summary")

    def __init__(self, lease: Lease, expected: int, records: Sequence[AnyRecord], summary: SessionSummary) -> None:
        self.lease = lease
        self.expected = expected
        self.bodies = [encode_body(record) for record in records]
        self.summary = summary

    def __call__(self, connection: Connection) -> None:
        """Add the records and update the session's row, if the lease holds and the length is as expected.

        Raises:
            LeaseLost: Another process holds the lease now.
            JournalConflict: The journal has more or fewer records.
        """
        session, owner, epoch, *_ = session_row = self.session_row
        if connection.execute(_UPDATE_SESSION, session_row).rowcount == 0:
            if connection.execute(_HAS_LEASE, (session, owner, epoch)).fetchone() is None:
                raise lease_lost_error(self.lease.session)
            raise journal_conflict_error(self.lease.session, self.expected)
        insert = "INSERT INTO journal (session, seq, body) VALUES (?, ?, ?)"
        connection.executemany(
            insert, [(session, seq, body) for seq, body in enumerate(self.bodies, self.expected + 1)]
        )

    @staticmethod
    def execute_all(connection: Connection, appends: "Sequence[AppendOperation]") -> bool:
        """Execute all appends. Write nothing and return False if any would fail, or if two are for the same session."""
        # Encode both before writing, because text that can't be encoded raises here.
        session_rows = _encoder.encode([append.session_row for append in appends]).decode()
        records = _encoder.encode([row for append in appends for row in append.journal_rows]).decode()
        [valid_count] = connection.execute(_COUNT_VALID, (session_rows,)).fetchone()
        if valid_count != len(appends):
            return False
        connection.execute(_UPDATE_SESSIONS, (session_rows,))
        connection.execute(_INSERT_RECORDS, (records,))
        return True

    @property
    def session_row(self) -> tuple[object, ...]:
        """The session's new row, preceded by the values that must match before it is written."""
        lease, s = self.lease, self.summary
        key_columns = (lease.session, lease.owner, lease.epoch, self.expected, self.expected + len(self.bodies))
        return (*key_columns, s.cursor, s.is_open, s.is_waiting, s.turns, s.title, s.updated_at)

    @property
    def journal_rows(self) -> list[tuple[str, int, str]]:
        """The new rows of the journal."""
        return [(self.lease.session, seq, body.decode()) for seq, body in enumerate(self.bodies, self.expected + 1)]


_PUT = """
INSERT INTO inbox (session, seq, id, body)
VALUES (?1, (SELECT coalesce(max(seq), 0) + 1 FROM inbox WHERE session = ?1), ?2, ?3)
ON CONFLICT (session, id) DO NOTHING RETURNING seq"""

# Jump from session to session in the index, so that the bodies of a long inbox are not read.
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

# One statement checks the lease and the length and writes the new row. It changes nothing unless both match.
_UPDATE_SESSION = """
INSERT INTO sessions (session, length, cursor, is_open, is_waiting, turns, title, updated_at)
SELECT ?1, ?5, ?6, ?7, ?8, ?9, ?10, ?11
WHERE EXISTS (SELECT 1 FROM leases WHERE session = ?1 AND owner = ?2 AND epoch = ?3)
AND coalesce((SELECT length FROM sessions WHERE session = ?1), 0) = ?4
ON CONFLICT (session) DO UPDATE SET length = excluded.length, cursor = excluded.cursor, is_open = excluded.is_open,
    is_waiting = excluded.is_waiting, turns = excluded.turns, title = excluded.title,
    updated_at = excluded.updated_at"""

_RECORD_DELETION = "INSERT INTO forgotten (session, last_row) SELECT ?, coalesce(max(rowid), 0) FROM journal"
_HAS_LEASE = "SELECT 1 FROM leases WHERE session = ? AND owner = ? AND epoch = ?"
_CURRENT_LEASE = "SELECT owner, epoch, expires_at FROM leases LEFT JOIN owners USING (owner) WHERE session = ?"


def put(connection: Connection, session: str, command_id: str, body: bytes) -> PutResult:
    """Add a command to the inbox. If its id already exists, return the existing entry's position."""
    row = connection.execute(_PUT, (session, command_id, body)).fetchall()
    if row:
        return PutResult(row[0][0], is_new=True)
    existing = connection.execute("SELECT seq FROM inbox WHERE session = ? AND id = ?", (session, command_id))
    return PutResult(existing.fetchone()[0], is_new=False)


def entries_after(connection: Connection, session: str, seq: int) -> list[InboxEntry]:
    """Return the inbox's entries after `seq`."""
    rows = connection.execute("SELECT seq, body FROM inbox WHERE session = ? AND seq > ? ORDER BY seq", (session, seq))
    commands = decode_rows(COMMAND_DECODER, rows, f"inbox of session {session!r}")
    return [InboxEntry(seq, command) for seq, command in commands]


def unread_sessions(connection: Connection) -> list[str]:
    """Return the sessions with entries after their cursor."""
    return [session for (session,) in connection.execute(_UNREAD)]


def unfinished_sessions(connection: Connection) -> list[str]:
    """Return the sessions with pending work."""
    return [session for (session,) in connection.execute(_UNFINISHED)]


def read_journal(connection: Connection, session: str, after: int) -> list[AnyRecord]:
    """Return the journal's records after the first `after`."""
    query = "SELECT seq, body FROM journal WHERE session = ? AND seq > ? ORDER BY seq"
    rows = connection.execute(query, (session, after))
    return [record for _, record in decode_rows(RECORD_DECODER, rows, f"journal of session {session!r}")]


def list_sessions(connection: Connection) -> list[SessionListEntry]:
    """Return all sessions, the most recently changed first."""
    rows = connection.execute(
        "SELECT session, cursor, is_open, is_waiting, turns, title, updated_at FROM sessions "
        "ORDER BY updated_at DESC, session"
    )
    return [
        SessionListEntry(session, SessionSummary(cursor, bool(is_open), bool(is_waiting), turns, title, updated_at))
        for session, cursor, is_open, is_waiting, turns, title, updated_at in rows
    ]


def delete_session(connection: Connection, session: str) -> bool:
    """Delete a session and revoke its lease. Return False if it does not exist."""
    deleted_rows = 0
    for table in ("inbox", "journal", "sessions"):
        deleted_rows += connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,)).rowcount  # noqa: S608
    connection.execute("UPDATE leases SET owner = '' WHERE session = ?", (session,))
    if deleted_rows:
        connection.execute(_RECORD_DELETION, (session,))
    return deleted_rows > 0


def renew_owner(connection: Connection, owner: str, expires_at: float) -> None:
    """Set the time until which an owner counts as alive."""
    connection.execute("INSERT OR REPLACE INTO owners (owner, expires_at) VALUES (?, ?)", (owner, expires_at))


def acquire_lease(
    connection: Connection, session: str, owner: str, now: float, is_alive: Callable[[str], bool]
) -> Lease | None:
    """Assign a session to an owner with the next epoch. Return None if another live owner has it."""
    row = connection.execute(_CURRENT_LEASE, (session,)).fetchone()
    if row is None:
        connection.execute("INSERT INTO leases (session, owner, epoch) VALUES (?, ?, 1)", (session, owner))
        return Lease(session, owner, 1)
    holder, epoch, _ = row
    if holder != owner and is_session_owned(connection, session, now, is_alive):
        return None
    connection.execute("UPDATE leases SET owner = ?, epoch = ? WHERE session = ?", (owner, epoch + 1, session))
    return Lease(session, owner, epoch + 1)


def is_session_owned(connection: Connection, session: str, now: float, is_alive: Callable[[str], bool]) -> bool:
    """Return whether a live owner has the session."""
    row = connection.execute(_CURRENT_LEASE, (session,)).fetchone()
    if row is None:
        return False
    holder, _, expires_at = row
    return expires_at is not None and expires_at > now and is_alive(holder)


def release_lease(connection: Connection, lease: Lease) -> None:
    """Remove the owner from a lease, unless another owner holds it now. The epoch does not change."""
    query = "UPDATE leases SET owner = '' WHERE session = ? AND owner = ? AND epoch = ?"
    connection.execute(query, (lease.session, lease.owner, lease.epoch))


def delete_expired_owners(connection: Connection, now: float) -> None:
    """Delete the owners that have expired. A lease whose owner is unknown counts as free."""
    connection.execute("DELETE FROM owners WHERE expires_at <= ?", (now,))


def release_all_leases(connection: Connection, owner: str) -> None:
    """Release all leases of an owner, and delete the owner."""
    connection.execute("UPDATE leases SET owner = '' WHERE owner = ?", (owner,))
    connection.execute("DELETE FROM owners WHERE owner = ?", (owner,))


def lease_lost_error(session: str) -> LeaseLost:
    """Return the error for a write under a lease that another process holds now."""
    return LeaseLost(f"Session {session!r} is owned by another process now; this one must not write to it again.")


def journal_conflict_error(session: str, expected: int) -> JournalConflict:
    """Return the error for an append to a journal whose length is not as expected."""
    return JournalConflict(f"The journal of session {session!r} does not have {expected} records. Nothing was written.")
