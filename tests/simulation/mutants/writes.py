"""Bugs of writing: fences that are down, and doors that take the same message twice."""

import itertools
from collections.abc import Sequence
from typing import Any

from hark.protocol.store import Accepted, Lease
from hark.store import rows
from tests.simulation.mutants.mutant import Mutant

_put = rows.put
_names = itertools.count()


def _insert_anyway(connection: Any, lease: Lease, expected: int, bodies: Sequence[bytes], summary: Any) -> None:
    session = lease.session
    [length] = connection.execute("SELECT count(*) FROM journal WHERE session = ?", (session,)).fetchone()
    line = (session, length + len(bodies), summary.cursor, summary.is_open, summary.is_waiting, summary.turns, "", 0.0)
    connection.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", line)
    for seq, body in enumerate(bodies, length + 1):
        connection.execute("INSERT INTO journal (session, seq, body) VALUES (?, ?, ?)", (session, seq, body))


def _put_row_anyway(connection: Any, session: str, command: str, body: bytes) -> Accepted:
    return _put(connection, session, f"{command} {next(_names)}", body)


MUTANTS = (
    Mutant(
        "A machine that lost its lease still writes",
        ((rows, "append", _insert_anyway),),
    ),
    Mutant("A redelivered message is taken twice", ((rows, "put", _put_row_anyway),)),
)
