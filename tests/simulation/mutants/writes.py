"""Bugs of writing: fences that are down, and doors that take the same message twice."""

import itertools
from collections.abc import Sequence
from typing import Any

from hark.protocol.commands import Command
from hark.protocol.store import Accepted, Entry, Lease
from hark.store import rows
from hark.store.memory import MemoryInbox, MemoryJournal, _Kept
from tests.simulation.mutants.mutant import Mutant

_put = rows.put
_names = itertools.count()


async def _append_anyway(self: Any, lease: Lease, expected: int, records: Sequence[Any], summary: Any) -> None:
    kept = self._kept.setdefault(lease.session, _Kept())
    kept.records.extend(records)
    kept.summary = summary


def _insert_anyway(self: rows.Append, connection: Any) -> None:
    session, summary = self.lease.session, self.summary
    [length] = connection.execute("SELECT count(*) FROM journal WHERE session = ?", (session,)).fetchone()
    end = length + len(self.bodies)
    line = (session, end, summary.cursor, summary.is_open, summary.is_waiting, summary.turns, "", 0.0)
    connection.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", line)
    for seq, body in enumerate(self.bodies, length + 1):
        connection.execute("INSERT INTO journal (session, seq, body) VALUES (?, ?, ?)", (session, seq, body))


def _one_by_one(connection: Any, appends: Sequence[rows.Append]) -> bool:
    return False


async def _put_anyway(self: Any, session: str, command: Command) -> Accepted:
    kept = self._kept.setdefault(session, _Kept())
    seq = len(kept.entries) + 1
    kept.entries.append(Entry(seq, command))
    return Accepted(seq, is_new=True)


def _put_row_anyway(connection: Any, session: str, command: str, body: bytes) -> Accepted:
    return _put(connection, session, f"{command} {next(_names)}", body)


MUTANTS = (
    Mutant(
        "A machine that lost its lease still writes",
        (
            (MemoryJournal, "append", _append_anyway),
            (rows.Append, "__call__", _insert_anyway),
            (rows.Append, "together", _one_by_one),
        ),
    ),
    Mutant("A redelivered message is taken twice", ((MemoryInbox, "put", _put_anyway), (rows, "put", _put_row_anyway))),
)
