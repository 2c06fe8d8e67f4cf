"""Imports past messages as finished turns of a new session."""

from collections.abc import Iterator, Sequence

from hark.engine.session.state import SessionState
from hark.protocol.agent import PastMessage
from hark.protocol.clock import Clock
from hark.protocol.messages import AssistantMessage, Note, UserMessage
from hark.protocol.names import turn_name
from hark.protocol.outcomes import Completed
from hark.protocol.records import AnyRecord, NoteAdded, Replied, TurnEnded, TurnStarted
from hark.protocol.store import Store


async def import_history(store: Store, clock: Clock, session: str, messages: Sequence[PastMessage]) -> bool:
    """Write past messages to a new session. Return False if the session is open or already has a history.

    Raises:
        StoreError: The history could not be stored.
    """
    return await write_new_journal(store, session, list(_history_records(session, messages, clock.now())))


async def write_new_journal(store: Store, session: str, records: Sequence[AnyRecord]) -> bool:
    """Write the journal of a new session. Return False if the session is open or already has a journal.

    Raises:
        StoreError: The journal could not be stored.
    """
    if await store.journal.read(session) or await store.inbox.entries_after(session, 0):
        return False
    lease = await store.leases.acquire(session)
    if lease is None:
        return False
    try:
        state = SessionState()
        for record in records:
            state.apply(record)
        await store.journal.append(lease, 0, records, state.summary())
    finally:
        await store.leases.release(lease)
    return True


def _history_records(session: str, messages: Sequence[PastMessage], at: float) -> Iterator[AnyRecord]:
    """Yield the records of the history. Each exchange becomes a turn: the user's messages, then the reply."""
    number = 0
    pending: list[UserMessage] = []
    for message in messages:
        match message:
            case Note(text):
                yield NoteAdded(text=text, at=at)
            case UserMessage():
                pending.append(message)
            case AssistantMessage():
                number += 1
                yield from _turn_records(turn_name(session, number), pending, message, at)
                pending = []
    if pending:
        yield from _turn_records(turn_name(session, number + 1), pending, AssistantMessage(), at)


def _turn_records(turn: str, prompts: Sequence[UserMessage], reply: AssistantMessage, at: float) -> Iterator[AnyRecord]:
    yield TurnStarted(turn=turn, messages=tuple(prompts), at=at)
    yield Replied(turn=turn, step=1, message=reply, at=at)
    yield TurnEnded(turn=turn, outcome=Completed(reply.text), at=at)
