"""A history that a new session is given: messages from elsewhere, as turns that are over."""

from collections.abc import Iterator, Sequence

from hark.engine.session.state import SessionState
from hark.protocol.agent import PastMessage
from hark.protocol.clock import Clock
from hark.protocol.messages import AssistantMessage, Note, UserMessage
from hark.protocol.names import turn_name
from hark.protocol.outcomes import Completed
from hark.protocol.records import AnyRecord, Remarked, Replied, TurnEnded, TurnStarted
from hark.protocol.store import Store


async def import_history(store: Store, clock: Clock, session: str, past: Sequence[PastMessage]) -> bool:
    """Give a new session a history; False when it has one, or somebody has it open.

    Raises:
        StoreError: It could not be stored.
    """
    return await write_new(store, session, list(_records(session, past, clock.now())))


async def write_new(store: Store, session: str, records: Sequence[AnyRecord]) -> bool:
    """Write the journal of a new session; False when it has one, or somebody has it open.

    Raises:
        StoreError: It could not be stored.
    """
    if await store.journal.read(session) or await store.inbox.after(session, 0):
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


def _records(session: str, past: Sequence[PastMessage], at: float) -> Iterator[AnyRecord]:
    """Yield each exchange as a turn: what the person said, then the replies to it."""
    number = 0
    asked: list[UserMessage] = []
    for message in past:
        match message:
            case Note(text):
                yield Remarked(text=text, at=at)
            case UserMessage():
                asked.append(message)
            case AssistantMessage():
                number += 1
                yield from _turn(turn_name(session, number), asked, message, at)
                asked = []
    if asked:
        yield from _turn(turn_name(session, number + 1), asked, AssistantMessage(), at)


def _turn(turn: str, asked: Sequence[UserMessage], reply: AssistantMessage, at: float) -> Iterator[AnyRecord]:
    yield TurnStarted(turn=turn, messages=tuple(asked), at=at)
    yield Replied(turn=turn, step=1, message=reply, at=at)
    yield TurnEnded(turn=turn, outcome=Completed(reply.text), at=at)
