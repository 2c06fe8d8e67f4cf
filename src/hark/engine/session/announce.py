"""What a record means to people: the events and receipts that it makes true."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from hark.engine.session.arrivals import Arrivals
from hark.engine.session.fanout import Fanout
from hark.engine.session.receipts import receipts
from hark.engine.session.state import SessionState
from hark.engine.turn.transcript import CRASH
from hark.protocol.events import CallEnd, CallStart, Event, MessageAccepted, Notice, ReceiptChanged, TurnEnd, TurnStart
from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Interrupted
from hark.protocol.receipts import Receipt
from hark.protocol.records import AnyRecord, CallEnded, CallStarted, Quarantined, Queued, TurnEnded, TurnStarted

CRASH_NOTICE = (
    "The last turn was cut by a crash. What it had said is kept, but for about the last second; what its running tools "
    "did is not known. "
    "Nothing was run again: say how to go on, or /continue."
)


@dataclass(frozen=True, slots=True)
class Announcement:
    """An event that waits for its record to be durable."""

    kind: type[Event]
    turn: str | None
    fields: tuple[object, ...]


def tell(news: Iterable[Announcement], arrivals: Arrivals, fanout: Fanout) -> None:
    """Tell what has become true: a receipt to whoever brought the message, and everything to the readers."""
    for announcement in news:
        first = announcement.fields[0]
        if isinstance(first, Receipt):
            arrivals.tell(first)
        fanout.emit(announcement.kind, announcement.turn, *announcement.fields)
    fanout.nudge()


def tell_receipts(news: Iterable[Announcement], arrivals: Arrivals) -> None:
    """Tell receipts to whoever brought the message, and nothing to the readers."""
    for announcement in news:
        receipt = announcement.fields[0]
        if isinstance(receipt, Receipt):
            arrivals.tell(receipt)


def read_along(session: str, state: SessionState, records: Iterable[AnyRecord]) -> list[list[Announcement]]:
    """Fold records of a journal into `state`; return what each of them means to people.

    Records of one moment came true together, as their writer told them: only the last receipt of each message counts.
    """
    every: list[list[Announcement]] = []
    for _, moment in groupby(records, key=lambda record: record.at):
        together: list[list[Announcement]] = []
        for record in moment:
            state.apply(record)
            together.append(list(announcements(session, state, record)))
        drop_outdated(together)
        every.extend(together)
    return every


def drop_outdated(news: Sequence[list[Announcement]]) -> None:
    """Of what comes true at one moment, keep only the last receipt of each message."""
    told: set[str] = set()
    for announcements in reversed(news):
        for announcement in reversed(list(announcements)):
            receipt = announcement.fields[0]
            if isinstance(receipt, Receipt):
                if receipt.id in told:
                    announcements.remove(announcement)
                told.add(receipt.id)


def announcements(session: str, state: SessionState, record: AnyRecord) -> Iterator[Announcement]:
    """Yield what to tell of a record that was just applied to `state`."""
    for message in _brought(record):
        yield Announcement(MessageAccepted, None, (message.id, message.text, message.author))
    for receipt in receipts(session, state, record):
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
            text = f"{record.name} ended after its turn was over; the model does not see this: {record.text}"
            yield Announcement(Notice, turn, ("late_result", text))
        case _:
            pass


def _brought(record: AnyRecord) -> tuple[UserMessage, ...]:
    """Return the message that came with a record: told with it, so that it is told once, and to guests too."""
    match record:
        case Queued(inbox=inbox, message=message) if inbox:
            return (message,)
        case TurnStarted(inbox=inbox, messages=messages) if inbox:
            return messages
        case _:
            return ()
