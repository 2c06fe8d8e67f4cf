"""Appends to the journals of many sessions, written with as few statements as one.

Each statement of a thread gives the interpreter's lock away and has to win it back from a busy loop, which takes
longer than the statement. A hundred replies that stream are kept in one fight instead of two hundred.
"""

from collections.abc import Sequence
from sqlite3 import Connection

import msgspec

from hark.protocol.records import AnyRecord
from hark.protocol.store import Lease, Summary
from hark.store import rows
from hark.store.codec import encode

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
_ADVANCE = f"""
INSERT OR REPLACE INTO sessions (session, length, cursor, is_open, is_waiting, turns, title, updated_at)
SELECT session, length, cursor, is_open, is_waiting, turns, title, updated_at FROM {_LINES}"""  # noqa: S608 ours
_INSERT = """
INSERT INTO journal (session, seq, body)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), CAST(json_extract(value, '$[2]') AS BLOB)
FROM json_each(?1) ORDER BY key"""


class Append:
    """Records for the end of one journal: an operation that is done together with others of its kind."""

    __slots__ = ("bodies", "expected", "lease", "summary")

    def __init__(self, lease: Lease, expected: int, records: Sequence[AnyRecord], summary: Summary) -> None:
        self.lease = lease
        self.expected = expected
        self.bodies = [encode(record) for record in records]
        self.summary = summary

    def __call__(self, connection: Connection) -> None:
        """Do this one alone.

        Raises:
            LeaseLost: The lease is another's by now.
            JournalConflict: The journal has more or fewer records.
        """
        rows.append(connection, self.lease, self.expected, self.bodies, self.summary)

    @staticmethod
    def together(connection: Connection, appends: "Sequence[Append]") -> bool:
        """Do them all; or nothing, and return False, if one of them must be refused or two are of one session."""
        # Both before anything is written: words that can't be encoded raise here.
        lines = _encoder.encode([append.line for append in appends]).decode()
        records = _encoder.encode([row for append in appends for row in append.rows]).decode()
        [fitting] = connection.execute(_FITTING, (lines,)).fetchone()
        if fitting != len(appends):
            return False
        connection.execute(_ADVANCE, (lines,))
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
        session, first = self.lease.session, self.expected + 1
        return [(session, first + number, body.decode()) for number, body in enumerate(self.bodies)]


_encoder = msgspec.json.Encoder()
