"""Receipts: what became of each message, read off the records."""

from collections.abc import Iterator

from hark.engine.session.queue_rule import Waiting
from hark.engine.session.state import SessionState
from hark.protocol.commands import Delivery
from hark.protocol.receipts import QueueItem, Receipt, ReceiptState
from hark.protocol.records import (
    AnyRecord,
    Edited,
    Held,
    Moved,
    Queued,
    Released,
    Steered,
    TurnStarted,
    Withdrawn,
)


def receipts(session: str, state: SessionState, record: AnyRecord) -> Iterator[Receipt]:
    """Yield the receipts that a record makes true, once it is applied to `state` and durable."""
    match record:
        case TurnStarted(turn=turn, messages=messages):
            for message in messages:
                yield Receipt(message.id, session, ReceiptState.STARTED, turn)
            yield from _waiting(session, state)
        case Steered(turn=turn, messages=messages):
            for message in messages:
                yield Receipt(message.id, session, ReceiptState.STEERED, turn)
        case Queued():
            position = state.position(record.message.id)
            yield _receipt(session, state, state.queue[position - 1], position)
        case Held() | Released() | Moved():
            yield from _waiting(session, state)
        case Edited(message=message):
            yield Receipt(message, session, ReceiptState.EDITED, position=state.position(message))
        case Withdrawn(message=message, text=text):
            yield Receipt(message, session, ReceiptState.WITHDRAWN, text=text)
        case _:
            pass


def queue_items(session: str, state: SessionState) -> list[QueueItem]:
    """Return what waits, in running order."""
    return [
        QueueItem(waiting.message.id, waiting.message.text, waiting.delivery, receipt.state)
        for waiting, receipt in zip(state.queue, _waiting(session, state), strict=True)
    ]


def _waiting(session: str, state: SessionState) -> Iterator[Receipt]:
    for position, waiting in enumerate(state.queue, 1):
        yield _receipt(session, state, waiting, position)


def _receipt(session: str, state: SessionState, waiting: Waiting, position: int) -> Receipt:
    """Return the receipt of a message that waits."""
    message = waiting.message.id
    if state.is_held:
        return Receipt(message, session, ReceiptState.HELD, position=position)
    if state.turn is not None and waiting.turn == state.turn.id:
        if waiting.delivery is Delivery.INTERRUPT:
            return Receipt(message, session, ReceiptState.INTERRUPTING, state.turn.id, position)
        if waiting.delivery is Delivery.STEER:
            return Receipt(message, session, ReceiptState.STEERING, state.turn.id, position)
    return Receipt(message, session, ReceiptState.QUEUED, position=position)
