"""Guarantees about background work: each end is reported once, and a stop or the limit prevents wake-ups."""

from collections import Counter

from hark.protocol.messages import Effect
from hark.protocol.names import is_from_user, is_wake_up, wake_up_id
from hark.protocol.records import CallEnded, Queued, SessionReset, TurnStarted, WorkEnded, WorkStarted
from tests.simulation.observations import CommittedRecord, Observations
from tests.simulation.pending_work import current_state

CHILD_STOP_SECONDS = 1.0
FINISHED = "finished.]"


def check_background_work(observations: Observations, max_wake_ups: int, *, is_alone: bool, has_errors: bool) -> None:
    """Check all guarantees about background work.

    `is_alone` means one machine without faults. `has_errors` means that the store failed in this run.
    """
    _check_reported_once(observations)
    _check_wake_up_limit(observations, max_wake_ups)
    if not has_errors:
        _check_silence_after_stop(observations, is_alone=is_alone)
    if is_alone:
        _check_stops_end_children(observations)


def _check_reported_once(observations: Observations) -> None:
    """Check that each end of work is recorded and delivered once, unless the model had already read about it."""
    state = current_state(observations)
    started: set[str] = set()
    reported: Counter[str] = Counter()
    dropped: set[str] = set()
    delivered: Counter[str] = Counter()
    for one in observations.records:
        match one.record:
            case WorkStarted(work=work):
                started.add(work)
            case CallEnded(result=result) if result.effect is Effect.CONTINUES:
                started.add(result.call)
            case WorkEnded(work=work, report=report):
                reported[work] += report is not None
                if report is None:
                    dropped.add(work)
            case SessionReset():
                dropped.update(reported)  # a reset drops the pending reports
            case TurnStarted(messages=messages):
                delivered.update(message.id for message in messages if is_wake_up(message.id))
            case _:
                pass
    delivered.update(report.id for report in state.reports)
    for work in sorted(started):
        count = delivered[wake_up_id(work)]
        if reported[work] > 1 or count > 1:
            observations.add_violation(f"work: the end of {work} was recorded {reported[work]} and told {count} times")
        if work not in dropped and (not reported[work] or not count):
            observations.add_violation(f"work: the end of {work} was recorded {reported[work]} and told {count} times")
    if state.work:
        observations.add_violation(f"work: {sorted(state.work)} is running although the world is idle")
    calls = {run.call for run in observations.tools}  # a child may end before the record of its call
    unknown = set(delivered) - {wake_up_id(work) for work in started | calls}
    if unknown:
        observations.add_violation(f"work: {sorted(unknown)} reports work that never started")


def _check_wake_up_limit(observations: Observations, max_wake_ups: int) -> None:
    count = 0
    for one in observations.records:
        if _is_wake_up_turn(one):
            count += 1
            if count > max_wake_ups:
                observations.add_violation(f"wake-ups: {count} turns without a message, the limit is {max_wake_ups}")
        elif _has_new_user_message(one):
            count = 0


def _check_silence_after_stop(observations: Observations, *, is_alone: bool) -> None:
    """Check that no report starts a turn after a stop, before the user sends the next message.

    A stop for all turns also applies to messages in flight. Several machines know only the order in the inbox, and a
    stop may name a turn that has just ended elsewhere.
    """
    recorded = [one.mark for one in observations.records if _has_new_user_message(one)]
    sent = [message.called_mark for message in observations.messages.values()]
    for one in observations.records:
        if not _is_wake_up_turn(one):
            continue
        stops = [stop for stop in observations.stops.values() if stop.returned_mark and stop.returned_mark < one.mark]
        effective = [stop for stop in stops if stop.settled or (is_alone and not stop.is_lost and not stop.turn)]
        last = max(effective, key=lambda stop: stop.called_mark, default=None)
        if last is None:
            continue
        messages = sent if is_alone and not last.turn else [*sent, *recorded]
        if not any(last.called_mark < mark < one.mark for mark in messages):
            observations.add_violation(f"wake-ups: {one.record} started after a stop, and no user has sent a message")


def _check_stops_end_children(observations: Observations) -> None:
    """Check that a child which was running when a user stopped its parent does not finish its task later."""
    started = {run.call: run.began_mark for run in observations.tools if run.name == "delegate"}
    for one in observations.records:
        if not isinstance(one.record, WorkEnded) or one.record.work not in started or one.record.report is None:
            continue
        for stop in observations.stops.values():
            is_effective = stop.settled or (stop.returned_mark is not None and not stop.turn)
            is_late = is_effective and one.at > stop.returned_at + CHILD_STOP_SECONDS
            if is_late and started[one.record.work] < stop.called_mark and FINISHED in one.record.report.text:
                observations.add_violation(f"stop: the child of {one.record.work} continued after {stop.id}")


def _is_wake_up_turn(one: CommittedRecord) -> bool:
    messages = one.record.messages if isinstance(one.record, TurnStarted) else ()
    return bool(messages) and all(is_wake_up(message.id) for message in messages)


def _has_new_user_message(one: CommittedRecord) -> bool:
    match one.record:
        case TurnStarted(messages=messages, inbox=inbox) if inbox:
            return any(is_from_user(message.id) for message in messages)
        case Queued(message=message, inbox=inbox) if inbox:
            return is_from_user(message.id)
        case _:
            return False
