"""A copy of a conversation, as a session of its own."""

from msgspec import structs

from hark.app.sessions.import_history import write_new
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    CallStarted,
    Compacted,
    ModeChosen,
    Progress,
    Remarked,
    Replied,
    Rewound,
    RouteChosen,
    Steered,
    TurnEnded,
    TurnStarted,
)
from hark.protocol.store import Store

# What was said and done. What waits, and what was allowed, stays with the original.
_COPIED = (
    TurnStarted
    | Steered
    | Progress
    | Replied
    | CallStarted
    | CallEnded
    | TurnEnded
    | Compacted
    | Rewound
    | Remarked
    | RouteChosen
    | ModeChosen
)


async def fork(store: Store, session: str, name: str) -> bool:
    """Copy a session up to its last finished turn; False when there is nothing to copy, or the name is taken.

    Raises:
        StoreError: It could not be copied.
    """
    records = _finished(await store.journal.read(session))
    return bool(records) and await write_new(store, name, [structs.replace(record, inbox=0) for record in records])


def _finished(records: list[AnyRecord]) -> list[AnyRecord]:
    copied: list[AnyRecord] = [record for record in records if isinstance(record, _COPIED)]
    ends = [place for place, record in enumerate(copied, 1) if isinstance(record, TurnEnded)]
    return copied[: ends[-1]] if ends else []
