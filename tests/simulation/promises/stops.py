"""The promise that a stop reaches what runs, and what is on its way in."""

from hark.protocol.outcomes import Interrupted
from hark.protocol.receipts import ReceiptState
from tests.simulation.history import History
from tests.simulation.observations import Ledger, Stopped


def check_stops(ledger: Ledger, history: History, *, is_alone: bool, has_errors: bool) -> None:
    """A stop without a name ends what runs.

    `is_alone`: one machine without faults, where no message comes again. `has_errors`: the store failed in this run,
    so that a turn's end may have been out of its machine's hands.
    """
    for stop in ledger.stops.values():
        if stop.turn or stop.is_lost or stop.returned is None:
            continue
        if stop.settled is None and not has_errors:
            _met_nothing(ledger, history, stop, stop.returned)
        if is_alone:
            _met_arrivals(ledger, history, stop)


def _met_nothing(ledger: Ledger, history: History, stop: Stopped, returned: int) -> None:
    """At the owner there is no excuse; at a guest a stop means the turn that its person saw running."""
    for turn, started in history.started.items():
        ended = history.ended.get(turn)
        if started.writer != stop.machine or stop.machine in ledger.deaths:
            continue
        if started.mark < stop.called and (ended is None or ended.mark > returned):
            ledger.violate(f"stop: {stop.id} met nothing, while {turn} ran from before it until after it")


def _met_arrivals(ledger: Ledger, history: History, stop: Stopped) -> None:
    for posted in ledger.posted.values():
        for told, receipt in posted.receipts:
            is_met = posted.called < stop.called < told and receipt.state is ReceiptState.STARTED
            end = history.end_of(receipt.turn or "")
            ended = history.ended.get(receipt.turn or "")
            if ended is not None and ended.mark < stop.called:
                continue  # decided and over, though the answer to its put is not back yet
            if is_met and end is not None and not isinstance(end.outcome, Interrupted):
                ledger.violate(f"stop: {posted.id} was on its way when {stop.id} came, and {receipt.turn} ran on")
