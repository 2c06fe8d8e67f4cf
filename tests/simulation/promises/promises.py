"""Checks of all guarantees after a run, against the journal and the observations. Each violation is a sentence."""

from collections import Counter
from collections.abc import Iterable, Mapping

from hark.protocol.commands import Say
from hark.protocol.messages import UserMessage
from hark.protocol.names import is_wake_up
from hark.protocol.outcomes import Failed
from hark.protocol.records import Edited, Queued, SessionReset, Steered, TurnEnded, TurnStarted, Withdrawn
from hark.protocol.rules import Rules
from tests.simulation.history import TurnHistory
from tests.simulation.network_link import NetworkLink
from tests.simulation.observations import Observations, StopRequest
from tests.simulation.promises.background import check_background_work
from tests.simulation.promises.interrupts import check_calls, check_interrupt_sources, check_interrupts
from tests.simulation.promises.order import check_order
from tests.simulation.promises.stops import check_stops
from tests.simulation.storage import LEASE_SECONDS

RETRIES_PER_TURN = 6
FOLLOW_SECONDS = 0.6  # the time for a follower to read the journal and to try to become the owner
RECOVER_SECONDS = 1.5
SLACK_SECONDS = 0.1


def check(observations: Observations, links: Mapping[str, NetworkLink], rules: Rules) -> None:
    """Check all guarantees and add each violation to the observations."""
    history = TurnHistory(observations)
    _check_each_message_processed_once(observations)
    _check_prompts(observations, history)
    _check_receipts(observations)
    _check_one_turn_at_a_time(observations)
    _check_internal_errors(observations)
    _check_retries(observations, history)
    _check_stop_times(observations, history, links, rules.limits.settle_seconds)
    has_errors = any(link.error_times for link in links.values())
    check_interrupt_sources(observations, history, has_errors=has_errors)
    is_alone = len(links) == 1 and not has_errors
    check_order(observations, is_alone=is_alone)
    check_stops(observations, history, is_alone=is_alone, has_errors=has_errors)
    check_interrupts(observations, history)
    check_calls(observations, history)
    check_background_work(observations, rules.limits.wake_ups, is_alone=is_alone, has_errors=has_errors)


def _check_each_message_processed_once(observations: Observations) -> None:
    accepted = {entry.command.id: entry.command for _, entry in observations.entries if isinstance(entry.command, Say)}
    processed_counts: Counter[str] = Counter()
    text = {message: say.text for message, say in accepted.items()}
    for one in observations.records:
        match one.record:
            case TurnStarted(messages=messages) | Steered(messages=messages):
                for message in messages:
                    if is_wake_up(message.id):
                        continue
                    processed_counts[message.id] += 1
                    if message.text != text.get(message.id):
                        observations.add_violation(f"conservation: {message.id} ran as {message.text!r}")
            case Withdrawn(message=name):
                processed_counts[name] += 1
            case Edited(message=name, text=new):
                text[name] = new
            case _:
                pass
    for name, times in processed_counts.items():
        if times > 1:
            observations.add_violation(f"conservation: {name} was processed {times} times")
        if name not in accepted:
            observations.add_violation(f"conservation: {name} was processed, and is in no inbox")
    for name in accepted:
        if not processed_counts[name]:
            observations.add_violation(f"conservation: {name} was accepted, and is in no turn and not withdrawn")
    for name, posted in observations.messages.items():
        if posted.receipts and name not in accepted:
            observations.add_violation(f"conservation: {name} got {posted.receipts[0][1].state}, and is in no inbox")


def _check_internal_errors(observations: Observations) -> None:
    """Check that no turn failed with an internal error. All other checks would pass for a turn that does nothing."""
    for one in observations.records:
        if isinstance(one.record, TurnEnded) and isinstance(one.record.outcome, Failed):
            error = one.record.outcome.error
            if error.code == "internal":
                observations.add_violation(f"accident: {one.record.turn} failed: {error.message}")


def _check_prompts(observations: Observations, history: TurnHistory) -> None:
    """Check that every request contains exactly the messages from all turns since the last reset, in order."""
    processed: list[tuple[int, str]] = []
    resets = [one.mark for one in observations.records if isinstance(one.record, SessionReset)]
    for one in observations.records:
        if isinstance(one.record, TurnStarted | Steered):
            processed.extend((one.mark, message.id) for message in one.record.messages)
    for stream in observations.streams:
        actual = [message.id for message in stream.request.messages if isinstance(message, UserMessage)]
        reset = max((mark for mark in resets if mark < stream.began_mark), default=0)
        expected = [name for mark, name in processed if reset < mark < stream.began_mark]
        if actual != expected:
            observations.add_violation(f"prompt: a request of {stream.turn} has the messages {actual}, not {expected}")


def _check_receipts(observations: Observations) -> None:
    """Check that a message is accepted as new at most once, and that its receipt matches the journal."""
    queued = {one.record.message.id for one in observations.records if isinstance(one.record, Queued)}
    for name, posted in observations.messages.items():
        states = [receipt for _, receipt in posted.receipts if receipt.state != "duplicate"]
        if len(states) > 1:
            observations.add_violation(f"honest: {name} was accepted as new {len(states)} times")
        for receipt in states:
            if receipt.state == "started" and observations.turn_of.get(name) != receipt.turn:
                observations.add_violation(
                    f"honest: {name} got a receipt for {receipt.turn} and ran in {observations.turn_of.get(name)}"
                )
            if receipt.state != "started" and receipt.position is not None and name not in queued:
                observations.add_violation(f"honest: {name} got the receipt {receipt.state} and was never queued")


def _check_one_turn_at_a_time(observations: Observations) -> None:
    open_turn = ""
    for one in observations.records:
        tag = str(one.record.__struct_config__.tag)
        turn: str = getattr(one.record, "turn", "")
        if tag == "turn.started":
            if open_turn:
                observations.add_violation(f"one turn: {turn} started while {open_turn} was open")
            open_turn = turn
        elif tag in ("steered", "replied", "progress", "call.started", "call.ended", "turn.ended"):
            if turn != open_turn:
                observations.add_violation(
                    f"one turn: {tag} of {turn} was written while {open_turn or 'no turn'} was open"
                )
            if tag == "turn.ended":
                open_turn = ""


def _check_retries(observations: Observations, history: TurnHistory) -> None:
    """Check that transient failures are retried within the budget, and that cancelled requests are never retried."""
    for turn, streams in history.streams.items():
        interrupted = next((one for one in streams if one.end == "cut"), None)
        if interrupted is not None and interrupted is not streams[-1]:
            observations.add_violation(f"cancel: {turn} asked the model again after its stream was cancelled")
        if interrupted is not None and any(
            mark > (interrupted.ended_mark or 0) and of == turn and code == "retry"
            for mark, of, code in observations.notices
        ):
            observations.add_violation(f"cancel: a retry notice was published after {turn} was interrupted")
        failures = sum(one.end == "transient" for one in streams)
        end = history.end_of(turn)
        if end and isinstance(end.outcome, Failed) and streams[-1].end == "transient" and failures <= RETRIES_PER_TURN:
            observations.add_violation(f"retry: {turn} failed after {failures} transient failures, within its budget")
        if end and isinstance(end.outcome, Failed) and end.outcome.error.code == "internal":
            observations.add_violation(f"error: {turn} failed: {end.outcome.error.message}")


def _check_stop_times(
    observations: Observations, history: TurnHistory, links: Mapping[str, NetworkLink], settle_seconds: float
) -> None:
    """Check that each stop returns within the settle time plus the time that store operations took."""
    for stop in observations.stops.values():
        took = stop.returned_at - stop.called_at
        if stop.returned_mark is None or stop.is_lost or took <= settle_seconds:
            continue
        started = history.started.get(stop.settled.turn) if stop.settled else None
        is_local = started is not None and started.writer == stop.machine and started.mark < stop.called_mark
        spans = _local_spans(links[stop.machine]) if is_local else _all_spans(links.values())
        bound = settle_seconds + (SLACK_SECONDS if is_local else FOLLOW_SECONDS) + _overlap_seconds(spans, stop)
        if took > bound:
            observations.add_violation(f"bounded: stop {stop.id} took {took:.3f} s, the limit is {bound:.3f} s")


Spans = list[tuple[float, float]]


def _local_spans(link: NetworkLink) -> Spans:
    """Return the time spans in which the owner waited for its own store or recovered from store errors."""
    return [*link.store_spans, *((at, at + RECOVER_SECONDS) for at in link.error_times)]


def _all_spans(links: Iterable[NetworkLink]) -> Spans:
    """Return the time spans that may delay a stop on a follower, such as wake-ups and leases that must expire."""
    spans: Spans = []
    for link in links:
        spans.extend([*_local_spans(link), *link.wake_spans])
        spans.extend((begin, begin + LEASE_SECONDS + FOLLOW_SECONDS) for begin in link.pause_times)
        if link.died_at is not None:
            spans.append((link.died_at, link.died_at + LEASE_SECONDS + FOLLOW_SECONDS))
    return spans


def _overlap_seconds(spans: Spans, stop: StopRequest) -> float:
    """Return for how many seconds the stop overlaps these time spans."""
    total, end = 0.0, stop.called_at
    for begin, until in sorted(spans):
        begin, until = max(begin, end), min(until, stop.returned_at)
        if until > begin:
            total += until - begin
            end = until
    return total
