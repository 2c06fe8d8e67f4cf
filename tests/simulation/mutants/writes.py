"""Planted bugs in journal and inbox writes: missing fences, and messages that are accepted twice."""

import itertools
from collections.abc import Sequence
from typing import Any

from hark.protocol.commands import Command
from hark.protocol.store import InboxEntry, Lease, PutResult
from hark.store import sqlite_statements
from hark.store.memory import MemoryInbox, MemoryJournal, _StoredSession
from tests.simulation.mutants.mutant import Mutant

_put = sqlite_statements.put
_names = itertools.count()


async def _append_without_fence(self: Any, lease: Lease, expected: int, records: Sequence[Any], summary: Any) -> None:
    kept = self._kept.setdefault(lease.session, _StoredSession())
    kept.records.extend(records)
    kept.summary = summary


def _insert_without_fence(self: sqlite_statements.AppendOperation, connection: Any) -> None:
    session, summary = self.lease.session, self.summary
    [length] = connection.execute("SELECT count(*) FROM journal WHERE session = ?", (session,)).fetchone()
    end = length + len(self.bodies)
    line = (session, end, summary.cursor, summary.is_open, summary.is_waiting, summary.turns, "", 0.0)
    connection.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", line)
    for seq, body in enumerate(self.bodies, length + 1):
        connection.execute("INSERT INTO journal (session, seq, body) VALUES (?, ?, ?)", (session, seq, body))


def _refuse_batch(connection: Any, appends: Sequence[sqlite_statements.AppendOperation]) -> bool:
    return False


async def _put_without_duplicate_check(self: Any, session: str, command: Command) -> PutResult:
    kept = self._kept.setdefault(session, _StoredSession())
    seq = len(kept.entries) + 1
    kept.entries.append(InboxEntry(seq, command))
    return PutResult(seq, is_new=True)


def _put_row_under_new_id(connection: Any, session: str, command: str, body: bytes) -> PutResult:
    return _put(connection, session, f"{command} {next(_names)}", body)


MUTANTS = (
    Mutant(
        "A machine that lost its lease still writes",
        (
            (MemoryJournal, "append", _append_without_fence),
            (sqlite_statements.AppendOperation, "__call__", _insert_without_fence),
            (sqlite_statements.AppendOperation, "execute_all", _refuse_batch),
        ),
    ),
    Mutant(
        "A redelivered message is accepted twice",
        ((MemoryInbox, "put", _put_without_duplicate_check), (sqlite_statements, "put", _put_row_under_new_id)),
    ),
)
