"""What became of a run, as the journal of its session tells it."""

from collections.abc import Sequence
from typing import assert_never

from msgspec import structs

from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome
from hark.protocol.records import AnyRecord, Queued, Steered, TurnEnded, TurnStarted, Withdrawn
from hark.protocol.schedules import Run, RunState


def progressed(run: Run, records: Sequence[AnyRecord]) -> Run:
    """Return the run as it stands behind these records of its session."""
    for record in records:
        if run.is_over:
            break
        match record:
            case Queued(message=message) if message.id == run.message:
                run = structs.replace(run, state=RunState.WAITING)
            case TurnStarted(turn=turn, messages=messages) | Steered(turn=turn, messages=messages):
                if any(message.id == run.message for message in messages):
                    run = structs.replace(run, state=RunState.RUNNING, turn=turn)
            case Withdrawn(message=message) if message == run.message:
                run = structs.replace(run, state=RunState.WITHDRAWN, detail=record.reason)
            case TurnEnded(turn=turn, outcome=outcome) if turn == run.turn:
                state, detail = _ended(outcome)
                run = structs.replace(run, state=state, detail=detail)
            case _:
                pass
    return run


def _ended(outcome: Outcome) -> tuple[RunState, str]:
    match outcome:
        case Completed():
            return RunState.COMPLETED, ""
        case Interrupted(source=source):
            return RunState.INTERRUPTED, source
        case Failed(error=error):
            return RunState.FAILED, error.message
        case LimitReached(limit=limit):
            return RunState.LIMIT_REACHED, limit
        case _:
            assert_never(outcome)
