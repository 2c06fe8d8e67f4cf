"""Receipts: the state of each message, derived from the records."""

from collections.abc import Iterator

from hark.engine.session.queue_rule import QUEUE_FULL, QueuedMessage
from hark.engine.session.state import SessionState
from hark.protocol.commands import Delivery
from hark.protocol.receipts import QueueItem, Receipt, ReceiptState
from hark.protocol.records import (
    AnyRecord,
    CommandRefused,
    Edited,
    Moved,
    Queued,
    QueueHeld,
    QueueReleased,
    Steered,
    TurnStarted,
    Withdrawn,
)


def receipts_for(session: str, state: SessionState, record: AnyRecord) -> Iterator[Receipt]:
    """Yield the receipts caused by a record that is durable and already applied to `state`."""
    match record:
        case TurnStarted(turn=turn, messages=messages):
            for message in messages:
                yield Receipt(message.id, session, ReceiptState.STARTED, turn)
            yield from _queue_receipts(session, state)
        case Steered(turn=turn, messages=messages):
            for message in messages:
                yield Receipt(message.id, session, ReceiptState.STEERED, turn)
        case Queued():
            position = state.position_of(record.message.id)
            yield _queue_receipt(session, state, state.queue[position - 1], position)
        case QueueHeld() | QueueReleased() | Moved():
            yield from _queue_receipts(session, state)
        case Edited(message=message):
            yield Receipt(message, session, ReceiptState.EDITED, position=state.position_of(message))
        case Withdrawn(message=message, text=text):
            yield Receipt(message, session, ReceiptState.WITHDRAWN, text=text)
        case CommandRefused(command=message, code=code, message=reason) if code == QUEUE_FULL:
            yield Receipt(message, session, ReceiptState.REFUSED, reason=reason)
        case _:
            pass


def queue_items(session: str, state: SessionState) -> list[QueueItem]:
    """Return the queued messages, in running order."""
    return [
        QueueItem(item.message.id, item.message.text, item.delivery, receipt.state)
        for item, receipt in zip(state.queue, _queue_receipts(session, state), strict=True)
    ]


def _queue_receipts(session: str, state: SessionState) -> Iterator[Receipt]:
    for position, item in enumerate(state.queue, 1):
        yield _queue_receipt(session, state, item, position)


def _queue_receipt(session: str, state: SessionState, item: QueuedMessage, position: int) -> Receipt:
    """Return the receipt for a queued message."""
    message = item.message.id
    if state.is_held:
        return Receipt(message, session, ReceiptState.HELD, position=position)
    if state.turn is not None and item.turn == state.turn.id:
        if item.delivery is Delivery.INTERRUPT:
            return Receipt(message, session, ReceiptState.INTERRUPTING, state.turn.id, position)
        if item.delivery is Delivery.STEER:
            return Receipt(message, session, ReceiptState.STEERING, state.turn.id, position)
    return Receipt(message, session, ReceiptState.QUEUED, position=position)
