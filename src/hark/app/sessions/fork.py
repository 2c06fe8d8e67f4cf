"""A copy of a conversation, as a session of its own."""

from msgspec import structs

from hark.engine.session.state import SessionState
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
    if not records or await store.journal.read(name) or await store.inbox.after(name, 0):
        return False
    lease = await store.leases.acquire(name)
    if lease is None:
        return False
    try:
        copies = [structs.replace(record, inbox=0) for record in records]
        state = SessionState()
        for record in copies:
            state.apply(record)
        await store.journal.append(lease, 0, copies, state.summary())
    finally:
        await store.leases.release(lease)
    return True


def _finished(records: list[AnyRecord]) -> list[AnyRecord]:
    copied: list[AnyRecord] = [record for record in records if isinstance(record, _COPIED)]
    ends = [place for place, record in enumerate(copied, 1) if isinstance(record, TurnEnded)]
    return copied[: ends[-1]] if ends else []
