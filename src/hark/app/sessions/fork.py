"""Copies a conversation into a new session."""

from msgspec import structs

from hark.app.sessions.import_history import write_new_journal
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    CallStarted,
    Compacted,
    ModeChosen,
    NoteAdded,
    Replied,
    ReplyTextSaved,
    ResetUndone,
    Rewound,
    RouteChosen,
    SessionReset,
    Steered,
    TurnEnded,
    TurnStarted,
)
from hark.protocol.store import Store

# Copied: messages, replies and calls. Queued messages and approvals stay with the original.
_COPIED_RECORDS = (
    TurnStarted
    | Steered
    | ReplyTextSaved
    | Replied
    | CallStarted
    | CallEnded
    | TurnEnded
    | Compacted
    | Rewound
    | SessionReset
    | ResetUndone
    | NoteAdded
    | RouteChosen
    | ModeChosen
)


async def fork(store: Store, session: str, new_name: str) -> bool:
    """Copy a session up to its last finished turn. Return False if no turn finished or the new name is taken.

    Raises:
        StoreError: The copy could not be stored.
    """
    records = _finished_records(await store.journal.read(session))
    return bool(records) and await write_new_journal(
        store, new_name, [structs.replace(record, inbox=0) for record in records]
    )


def _finished_records(records: list[AnyRecord]) -> list[AnyRecord]:
    copied: list[AnyRecord] = [record for record in records if isinstance(record, _COPIED_RECORDS)]
    ends = [number for number, record in enumerate(copied, 1) if isinstance(record, TurnEnded)]
    return copied[: ends[-1]] if ends else []
