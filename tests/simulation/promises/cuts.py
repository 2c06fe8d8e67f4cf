"""The promises about cuts: whose wish they were, what is silent after them, what stays, and what is said of calls."""

from hark.protocol.messages import Effect
from hark.protocol.outcomes import Interrupted
from hark.protocol.records import TurnStarted
from tests.simulation.history import History
from tests.simulation.observations import Ledger, ToolRun


def check_endings(ledger: Ledger, history: History, *, has_errors: bool) -> None:
    """No turn is interrupted unless somebody or something aimed at it. `has_errors`: the store failed in this run."""
    for turn in history.ended:
        end = history.end_of(turn)
        if end is None or not isinstance(end.outcome, Interrupted):
            continue
        source = end.outcome.source
        is_aimed = True
        if source.startswith("user:"):
            stop = ledger.stops[source.removeprefix("user:")]
            if stop.turn not in ("", turn):
                ledger.violate(f"clean: {turn} was ended by stop {stop.id}, which named {stop.turn}")
            is_aimed = _earliest_post(ledger, history, turn) < (stop.returned or ledger.mark())
        elif source == "new message":
            is_aimed = any(_cuts(one.record, turn) for one in ledger.records)
        elif source == "shutdown":
            is_aimed = bool(ledger.closes)
        elif source == "crash":
            is_aimed = has_errors or history.started[turn].writer != history.ended[turn].writer
        else:
            ledger.violate(f"clean: {turn} was ended by {source!r}, which is nobody")
        if not is_aimed:
            ledger.violate(f"clean: {turn} was ended by {source!r}, which was not aimed at it")


def _cuts(record: object, turn: str) -> bool:
    tag = record.__struct_config__.tag  # type: ignore[attr-defined]
    return bool(tag == "queued" and record.turn == turn and record.is_first)  # type: ignore[attr-defined]


def _earliest_post(ledger: Ledger, history: History, turn: str) -> int:
    record = history.started[turn].record
    assert isinstance(record, TurnStarted)
    return min(ledger.posted[message.id].called for message in record.messages if message.id in ledger.posted)


def check_cuts(ledger: Ledger, history: History) -> None:
    """After a turn's end nothing of it begins, its streams are closed, and what was said is kept."""
    for turn, one in history.ended.items():
        end = history.end_of(turn)
        assert end is not None
        _silence(ledger, history, turn, one.mark)
        if isinstance(end.outcome, Interrupted) and end.outcome.source != "crash":
            for stop in ledger.stops.values():
                if stop.settled and stop.settled.turn == turn and stop.returned is not None:
                    _nothing_runs(ledger, history, turn, stop.returned, end.outcome)
            _nothing_runs(ledger, history, turn, one.mark, end.outcome)
            _kept(ledger, history, turn, one.writer)
        for reply in history.replies.get(turn, []):
            said = [stream.text for stream in history.streams.get(turn, [])]
            if reply.message.is_partial and not any(text.startswith(reply.message.text) for text in said):
                ledger.violate(f"partial: {turn} keeps {reply.message.text!r}, which was not said so")
            if not reply.message.is_partial and reply.message.text not in said:
                ledger.violate(f"partial: {turn} has the reply {reply.message.text!r}, which was not said")


def _silence(ledger: Ledger, history: History, turn: str, mark: int) -> None:
    if any(stream.began > mark for stream in history.streams.get(turn, [])):
        ledger.violate(f"silence: {turn} asked the model after its end")
    for run in ledger.tools:
        if run.turn == turn and run.began > mark:
            ledger.violate(f"silence: {turn} started {run.call} after its end")


def _nothing_runs(ledger: Ledger, history: History, turn: str, mark: int, outcome: Interrupted) -> None:
    for stream in history.streams.get(turn, []):
        if stream.ended is None or stream.ended > mark:
            ledger.violate(f"silence: a stream of {turn} was still open when its end was told")
    for run in ledger.tools:
        is_over = run.ended is not None and run.ended < mark
        if (
            run.turn == turn
            and not is_over
            and run.machine not in ledger.deaths
            and run.name not in outcome.left_running
        ):
            ledger.violate(f"settle: {run.call} ({run.name}) of {turn} ran on, and {outcome} does not name it")


def _kept(ledger: Ledger, history: History, turn: str, writer: str) -> None:
    """What people saw of the reply that was cut stays, up to what they had been shown."""
    streams = history.streams.get(turn, [])
    if not streams or streams[-1].end == "done" or not streams[-1].text or streams[-1].machine != writer:
        return
    end = history.end_of(turn)
    assert end is not None
    assert isinstance(end.outcome, Interrupted)
    stop = ledger.stops.get(end.outcome.source.removeprefix("user:"))
    said = streams[-1].text
    shown = said if stop is None or stop.shown is None else said[: stop.shown]
    replies = history.replies.get(turn, [])
    kept = replies[-1].message.text if replies and replies[-1].message.is_partial else ""
    if kept not in (shown, said):
        ledger.violate(f"partial: {turn} was cut after {said!r}, and {kept!r} is kept")


def check_calls(ledger: Ledger, history: History) -> None:
    """Each call's result says what is known of it, and late results stay apart."""
    runs: dict[str, ToolRun] = {run.call: run for run in ledger.tools}
    for turn, results in history.results.items():
        end = history.ended.get(turn)
        for ended in results:
            result, run = ended.result, runs.get(ended.result.call)
            if result.effect is Effect.NOT_STARTED and run is not None:
                ledger.violate(f"effect: {result.call} of {turn} is said not to have started, and it did")
            if result.effect is Effect.COMPLETED and (run is None or run.end not in ("finished", "raised")):
                ledger.violate(f"effect: {result.call} of {turn} is said to be completed, and it is not")
            is_late = run is not None and end is not None and (run.ended is None or run.ended > end.mark)
            if is_late and run is not None and run.text in result.text:
                ledger.violate(f"late: the late result of {result.call} is in the transcript of {turn}")
