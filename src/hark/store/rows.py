"""The SQL of inbox, journal and leases: plain functions on a connection, each inside its caller's transaction.

A function checks first and writes after, so that one which refuses has written nothing.
"""

from collections.abc import Callable, Sequence
from sqlite3 import Connection

from hark.protocol.records import AnyRecord
from hark.protocol.store import Accepted, Entry, JournalConflict, Lease, LeaseLost, SessionLine, Summary
from hark.store.codec import COMMANDS, RECORDS, decode

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
SELECT ?1, ?4 + ?5, ?6, ?7, ?8, ?9, ?10, ?11
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


def append(connection: Connection, lease: Lease, expected: int, bodies: Sequence[bytes], summary: Summary) -> None:
    """Add records to the journal and renew the session's line, if the lease holds and the length is as expected.

    Raises:
        LeaseLost: The lease is another's by now.
        JournalConflict: The journal has more or fewer records.
    """
    session = lease.session
    s = summary
    line = (len(bodies), s.cursor, s.is_open, s.is_waiting, s.turns, s.title, s.updated_at)
    advanced = connection.execute(_ADVANCE, (session, lease.owner, lease.epoch, expected, *line))
    if advanced.rowcount == 0:
        if connection.execute(_OWNED, (session, lease.owner, lease.epoch)).fetchone() is None:
            raise lease_lost(session)
        raise journal_conflict(session, expected)
    insert = "INSERT INTO journal (session, seq, body) VALUES (?, ?, ?)"
    if len(bodies) == 1:
        connection.execute(insert, (session, expected + 1, bodies[0]))
    else:
        connection.executemany(insert, ((session, seq, body) for seq, body in enumerate(bodies, expected + 1)))


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
