"""The guarantee that a stop reaches running turns and messages in flight."""

from hark.protocol.outcomes import Interrupted
from hark.protocol.receipts import ReceiptState
from tests.simulation.history import TurnHistory
from tests.simulation.observations import Observations, StopRequest


def check_stops(observations: Observations, history: TurnHistory, *, is_alone: bool, has_errors: bool) -> None:
    """Check that a stop without a turn id ends the running turn.

    `is_alone` means one machine without faults, so that no message is redelivered. `has_errors` means that the store
    failed in this run, so that a machine may have lost control of its turn.
    """
    for stop in observations.stops.values():
        if stop.turn or stop.is_lost or stop.returned_mark is None:
            continue
        if stop.settled is None and not has_errors:
            _check_stop_found_nothing(observations, history, stop, stop.returned_mark)
        if is_alone:
            _check_messages_in_flight(observations, history, stop)


def _check_stop_found_nothing(
    observations: Observations, history: TurnHistory, stop: StopRequest, returned_mark: int
) -> None:
    """Check that a stop on the owner's machine reports the turn that was running during the whole stop, if any."""
    for turn, started in history.started.items():
        ended = history.ended.get(turn)
        was_taken_over = ended is not None and ended.writer != stop.machine
        if started.writer != stop.machine or stop.machine in observations.deaths or was_taken_over:
            continue
        if started.mark < stop.called_mark and (ended is None or ended.mark > returned_mark):
            observations.add_violation(f"stop: {stop.id} found no turn, but {turn} ran before and after it")


def _check_messages_in_flight(observations: Observations, history: TurnHistory, stop: StopRequest) -> None:
    for posted in observations.messages.values():
        for receipt_mark, receipt in posted.receipts:
            was_in_flight = (
                posted.called_mark < stop.called_mark < receipt_mark and receipt.state is ReceiptState.STARTED
            )
            end = history.end_of(receipt.turn or "")
            ended = history.ended.get(receipt.turn or "")
            if ended is not None and ended.mark < stop.called_mark:
                continue  # decided and over, although the answer to its put is not back yet
            if was_in_flight and end is not None and not isinstance(end.outcome, Interrupted):
                observations.add_violation(
                    f"stop: {posted.id} was in flight when {stop.id} arrived, and {receipt.turn} continued"
                )
