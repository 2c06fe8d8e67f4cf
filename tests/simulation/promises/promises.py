"""The promises, checked after a run against the journal and all that was seen: one sentence for each violation."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise

from hark.protocol.commands import Delivery, Say
from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Failed
from hark.protocol.records import Edited, Moved, Queued, Steered, TurnEnded, TurnStarted, Withdrawn
from hark.protocol.rules import Rules
from tests.simulation.history import History
from tests.simulation.network_link import Link
from tests.simulation.observations import Ledger, Stopped
from tests.simulation.promises.cuts import check_calls, check_cuts, check_endings
from tests.simulation.promises.stops import check_stops
from tests.simulation.storage import LEASE_SECONDS

RETRIES_PER_TURN = 6
FOLLOW_SECONDS = 0.6  # a guest's look at the journal, and its try to adopt
RECOVER_SECONDS = 1.5
SLACK_SECONDS = 0.1


def check(ledger: Ledger, links: Mapping[str, Link], rules: Rules) -> None:
    """Add what is broken to the ledger's violations."""
    history = History(ledger)
    _conservation(ledger)
    _order(ledger)
    _prompts(ledger, history)
    _receipts(ledger)
    _one_turn_at_a_time(ledger)
    _no_accidents(ledger)
    _retries(ledger, history)
    _bounded(ledger, history, links, rules.limits.settle_seconds)
    has_errors = any(link.errors for link in links.values())
    check_endings(ledger, history, has_errors=has_errors)
    check_stops(ledger, history, is_alone=len(links) == 1 and not has_errors, has_errors=has_errors)
    check_cuts(ledger, history)
    check_calls(ledger, history)


def _conservation(ledger: Ledger) -> None:
    accepted = {entry.command.id: entry.command for _, entry in ledger.entries if isinstance(entry.command, Say)}
    taken: Counter[str] = Counter()
    text = {message: say.text for message, say in accepted.items()}
    for one in ledger.records:
        match one.record:
            case TurnStarted(messages=messages) | Steered(messages=messages):
                for message in messages:
                    taken[message.id] += 1
                    if message.text != text.get(message.id):
                        ledger.violate(f"conservation: {message.id} ran as {message.text!r}")
            case Withdrawn(message=name):
                taken[name] += 1
            case Edited(message=name, text=new):
                text[name] = new
            case _:
                pass
    for name, times in taken.items():
        if times > 1:
            ledger.violate(f"conservation: {name} was taken {times} times")
        if name not in accepted:
            ledger.violate(f"conservation: {name} was taken, and is in no inbox")
    for name in accepted:
        if not taken[name]:
            ledger.violate(f"conservation: {name} was accepted, and is in no turn and not withdrawn")
    for name, posted in ledger.posted.items():
        if posted.receipts and name not in accepted:
            ledger.violate(f"conservation: {name} got {posted.receipts[0][1].state}, and is in no inbox")


def _no_accidents(ledger: Ledger) -> None:
    """A turn that failed for a reason of our own would keep every other promise, doing nothing."""
    for one in ledger.records:
        if isinstance(one.record, TurnEnded) and isinstance(one.record.outcome, Failed):
            error = one.record.outcome.error
            if error.code == "internal":
                ledger.violate(f"accident: {one.record.turn} failed: {error.message}")


def _order(ledger: Ledger) -> None:
    """Queued messages start in the order of the inbox, and so do interrupting ones, unless somebody moved them."""
    place = {entry.command.id: entry.seq for _, entry in ledger.entries}
    moved = {one.record.message for one in ledger.records if isinstance(one.record, Moved)}
    started = [
        message.id for one in ledger.records if isinstance(one.record, TurnStarted) for message in one.record.messages
    ]
    for delivery in (Delivery.QUEUE, Delivery.INTERRUPT):
        names = [
            name
            for name in started
            if name not in moved and name in ledger.posted and ledger.posted[name].delivery is delivery
        ]
        for first, second in pairwise(names):
            if place[first] > place[second]:
                ledger.violate(f"order: {first} ran before {second}, which came first ({delivery})")


def _prompts(ledger: Ledger, history: History) -> None:
    """Every request has exactly the messages that turns had taken by then, in order."""
    taken: list[tuple[int, str]] = []
    for one in ledger.records:
        if isinstance(one.record, TurnStarted | Steered):
            taken.extend((one.mark, message.id) for message in one.record.messages)
    for streamed in ledger.streams:
        seen = [message.id for message in streamed.request.messages if isinstance(message, UserMessage)]
        due = [name for mark, name in taken if mark < streamed.began]
        if seen != due:
            ledger.violate(f"prompt: a request of {streamed.turn} has the messages {seen}, not {due}")


def _receipts(ledger: Ledger) -> None:
    """The first receipt agrees with how the message entered the journal."""
    queued = {one.record.message.id for one in ledger.records if isinstance(one.record, Queued)}
    for name, posted in ledger.posted.items():
        states = [receipt for _, receipt in posted.receipts if receipt.state != "duplicate"]
        if len(states) > 1:
            ledger.violate(f"honest: {name} was accepted as new {len(states)} times")
        for receipt in states:
            if receipt.state == "started" and ledger.turn_of.get(name) != receipt.turn:
                ledger.violate(f"honest: {name} was told {receipt.turn}, and ran in {ledger.turn_of.get(name)}")
            if receipt.state != "started" and receipt.position is not None and name not in queued:
                ledger.violate(f"honest: {name} was told {receipt.state}, and was never queued")


def _one_turn_at_a_time(ledger: Ledger) -> None:
    open_turn = ""
    for one in ledger.records:
        tag = str(one.record.__struct_config__.tag)
        turn: str = getattr(one.record, "turn", "")
        if tag == "turn.started":
            if open_turn:
                ledger.violate(f"one turn: {turn} started while {open_turn} was open")
            open_turn = turn
        elif tag in ("steered", "replied", "progress", "call.started", "call.ended", "turn.ended"):
            if turn != open_turn:
                ledger.violate(f"one turn: {tag} of {turn} was written while {open_turn or 'no turn'} was open")
            if tag == "turn.ended":
                open_turn = ""


def _retries(ledger: Ledger, history: History) -> None:
    """A passing failure is tried again, within the budget; our own cut never is."""
    for turn, streams in history.streams.items():
        cut = next((one for one in streams if one.end == "cut"), None)
        if cut is not None and cut is not streams[-1]:
            ledger.violate(f"cancel: {turn} asked the model again after its stream was cut")
        if cut is not None and any(
            mark > (cut.ended or 0) and of == turn and code == "retry" for mark, of, code in ledger.notices
        ):
            ledger.violate(f"cancel: people were told of a retry after {turn} was cut")
        failures = sum(one.end == "transient" for one in streams)
        end = history.end_of(turn)
        if end and isinstance(end.outcome, Failed) and streams[-1].end == "transient" and failures <= RETRIES_PER_TURN:
            ledger.violate(f"retry: {turn} failed after {failures} passing failures, within its budget")
        if end and isinstance(end.outcome, Failed) and end.outcome.error.code == "internal":
            ledger.violate(f"error: {turn} failed: {end.outcome.error.message}")


def _bounded(ledger: Ledger, history: History, links: Mapping[str, Link], settle_seconds: float) -> None:
    """A stop returns within the settle time, plus what the store took meanwhile."""
    for stop in ledger.stops.values():
        took = stop.returned_at - stop.called_at
        if stop.returned is None or stop.is_lost or took <= settle_seconds:
            continue
        started = history.started.get(stop.settled.turn) if stop.settled else None
        is_here = started is not None and started.writer == stop.machine and started.mark < stop.called
        spans = _spans_here(links[stop.machine]) if is_here else _spans_anywhere(links.values())
        bound = settle_seconds + (SLACK_SECONDS if is_here else FOLLOW_SECONDS) + _seconds(spans, stop)
        if took > bound:
            ledger.violate(f"bounded: stop {stop.id} took {took:.3f} s, and {bound:.3f} s is what it may")


Spans = list[tuple[float, float]]


def _spans_here(link: Link) -> Spans:
    """The owner waits for its own store, and recovers from its errors."""
    return [*link.store_time, *((at, at + RECOVER_SECONDS) for at in link.errors)]


def _spans_anywhere(links: Iterable[Link]) -> Spans:
    """A stop at a guest waits for wakes too, and for the leases of the dead: nobody can tell earlier that they are."""
    spans: Spans = []
    for link in links:
        spans.extend([*_spans_here(link), *link.wake_time])
        if link.died_at is not None:
            spans.append((link.died_at, link.died_at + LEASE_SECONDS + FOLLOW_SECONDS))
    return spans


def _seconds(spans: Spans, stop: Stopped) -> float:
    """Return how much of the stop's time lies in these spans."""
    total, end = 0.0, stop.called_at
    for begin, until in sorted(spans):
        begin, until = max(begin, end), min(until, stop.returned_at)
        if until > begin:
            total += until - begin
            end = until
    return total
