"""Events and receipts caused by a journal record, published once the record is durable."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from hark.engine.session.fanout import Fanout
from hark.engine.session.in_flight import InFlightMessages
from hark.engine.session.receipts import receipts_for
from hark.engine.session.state import SessionState
from hark.protocol.commands import CRASH
from hark.protocol.events import CallEnd, CallStart, Event, MessageAccepted, Notice, ReceiptChanged, TurnEnd, TurnStart
from hark.protocol.messages import UserMessage
from hark.protocol.names import continued_turn, is_wake_up, short_turn_name
from hark.protocol.outcomes import Interrupted
from hark.protocol.receipts import Receipt
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    CallStarted,
    Quarantined,
    Queued,
    SessionReset,
    TurnEnded,
    TurnStarted,
)

CRASH_NOTICE = (
    "The last turn was interrupted by a crash. Its reply is kept, except for about the last second; the effects of "
    "its running tools are unknown. "
    "Nothing was run again. Send a message, or send /continue to resume."
)


@dataclass(frozen=True, slots=True)
class Announcement:
    """An event to publish when its record is durable."""

    kind: type[Event]
    turn: str | None
    fields: tuple[object, ...]


def publish(announcements: Iterable[Announcement], in_flight: InFlightMessages, fanout: Fanout) -> None:
    """Publish announcements to all readers, and set each receipt on its in-flight message."""
    for announcement in announcements:
        first = announcement.fields[0]
        if isinstance(first, Receipt):
            in_flight.set_receipt(first)
        fanout.emit(announcement.kind, announcement.turn, *announcement.fields)
    fanout.notify_change()


def set_receipts(announcements: Iterable[Announcement], in_flight: InFlightMessages) -> None:
    """Set the receipts on their in-flight messages, without publishing anything to the readers."""
    for announcement in announcements:
        receipt = announcement.fields[0]
        if isinstance(receipt, Receipt):
            in_flight.set_receipt(receipt)


def apply_records(session: str, state: SessionState, records: Iterable[AnyRecord]) -> list[list[Announcement]]:
    """Apply journal records to `state`. Return the announcements for each record.

    Records with the same timestamp were written together. Of these, only each message's last receipt is announced.
    """
    results: list[list[Announcement]] = []
    for _, same_time in groupby(records, key=lambda record: record.at):
        group: list[list[Announcement]] = []
        for record in same_time:
            state.apply(record)
            group.append(list(announcements_for(session, state, record)))
        drop_outdated_receipts(group)
        results.extend(group)
    return results


def drop_outdated_receipts(batches: Sequence[list[Announcement]]) -> None:
    """Keep only the last receipt for each message among announcements that are published together."""
    seen: set[str] = set()
    for announcements in reversed(batches):
        for announcement in reversed(list(announcements)):
            receipt = announcement.fields[0]
            if isinstance(receipt, Receipt):
                if receipt.id in seen:
                    announcements.remove(announcement)
                seen.add(receipt.id)


def announcements_for(session: str, state: SessionState, record: AnyRecord) -> Iterator[Announcement]:
    """Yield the announcements for a record that was just applied to `state`."""
    for message in _new_messages(record):
        yield Announcement(MessageAccepted, None, (message.id, message.text, message.author))
    for receipt in receipts_for(session, state, record):
        yield Announcement(ReceiptChanged, receipt.turn, (receipt,))
    match record:
        case TurnStarted(turn=turn, messages=messages):
            yield Announcement(TurnStart, turn, (tuple(message.id for message in messages),))
        case CallStarted(turn=turn, call=call):
            asked = state.turn.calls[call] if state.turn else None
            if asked:
                yield Announcement(CallStart, turn, (call, asked.name, asked.arguments))
        case CallEnded(turn=turn, result=result):
            fields = (result.call, result.name, result.effect, result.text, result.is_error)
            yield Announcement(CallEnd, turn, fields)
        case TurnEnded(turn=turn, outcome=outcome):
            if isinstance(outcome, Interrupted) and outcome.source == CRASH:
                yield Announcement(Notice, turn, ("crash", CRASH_NOTICE))
            yield Announcement(TurnEnd, turn, (outcome, record.timings, record.usage, record.cost))
        case Quarantined(turn=turn):
            text = f"{record.name} finished after its turn had ended. The model does not see this result: {record.text}"
            yield Announcement(Notice, turn, ("late_result", text))
        case Queued(inbox=0, message=message) if continued := continued_turn(message.id):
            yield Announcement(Notice, None, ("continue", f"{short_turn_name(continued)} is continued automatically."))
        case SessionReset(reason=reason) if reason:
            text = f"The conversation was reset, because {reason}. /undo reset restores it."
            yield Announcement(Notice, None, ("reset", text))
        case _:
            pass


def _new_messages(record: AnyRecord) -> tuple[UserMessage, ...]:
    """Return the messages that are new in a record, so that each is announced only once, even to followers."""
    match record:
        case Queued(inbox=inbox, message=message) if inbox or continued_turn(message.id):
            return (message,)
        case TurnStarted(inbox=inbox, messages=messages):
            return messages if inbox else tuple(message for message in messages if is_wake_up(message.id))
        case _:
            return ()
