"""Guarantees about interrupts: their sources, no later activity, stored partial replies, and effects of calls."""

from hark.protocol.messages import Effect
from hark.protocol.outcomes import Interrupted
from hark.protocol.records import PauseRequested, ResetRequested, TurnStarted
from tests.simulation.history import TurnHistory
from tests.simulation.observations import Observations, ToolRun


def check_interrupt_sources(observations: Observations, history: TurnHistory, *, has_errors: bool) -> None:
    """Check that each interrupt targeted the turn that it ended. `has_errors`: the store failed in this run."""
    for turn in history.ended:
        end = history.end_of(turn)
        if end is None or not isinstance(end.outcome, Interrupted):
            continue
        source = end.outcome.source
        is_aimed = True
        if source.startswith("user:"):
            stop = observations.stops[source.removeprefix("user:")]
            if stop.turn not in ("", turn):
                observations.add_violation(f"clean: {turn} was ended by stop {stop.id}, which named {stop.turn}")
            is_aimed = _earliest_message(observations, history, turn) < (stop.returned_mark or observations.next_mark())
        elif source == "new message":
            is_aimed = any(_is_interrupt_of(one.record, turn) for one in observations.records)
        elif source in ("pause", "reset"):
            kind = PauseRequested if source == "pause" else ResetRequested
            is_aimed = any(isinstance(one.record, kind) and one.record.turn == turn for one in observations.records)
        elif source == "shutdown":
            is_aimed = bool(observations.closes)
        elif source == "crash":
            is_aimed = has_errors or history.started[turn].writer != history.ended[turn].writer
        else:
            observations.add_violation(f"clean: {turn} was ended by {source!r}, which is unknown")
        if not is_aimed:
            observations.add_violation(f"clean: {turn} was ended by {source!r}, which was not aimed at it")


def _is_interrupt_of(record: object, turn: str) -> bool:
    tag = record.__struct_config__.tag  # type: ignore[attr-defined]
    return bool(tag == "queued" and record.turn == turn and record.delivery == "interrupt")  # type: ignore[attr-defined]


def _earliest_message(observations: Observations, history: TurnHistory, turn: str) -> int:
    record = history.started[turn].record
    assert isinstance(record, TurnStarted)
    marks = [
        observations.messages[message.id].called_mark
        for message in record.messages
        if message.id in observations.messages
    ]
    return min(marks, default=history.started[turn].mark)  # a report from background work has no message


def check_interrupts(observations: Observations, history: TurnHistory) -> None:
    """Check that an ended turn starts no work, that its streams are closed, and that its partial reply is stored."""
    for turn, one in history.ended.items():
        end = history.end_of(turn)
        assert end is not None
        _check_silence(observations, history, turn, one.mark)
        if isinstance(end.outcome, Interrupted) and end.outcome.source != "crash":
            for stop in observations.stops.values():
                if stop.settled and stop.settled.turn == turn and stop.returned_mark is not None:
                    _check_nothing_runs(observations, history, turn, stop.returned_mark, end.outcome)
            _check_nothing_runs(observations, history, turn, one.mark, end.outcome)
            _check_partial_reply(observations, history, turn, one.writer)
        for reply in history.replies.get(turn, []):
            streamed_texts = [stream.text for stream in history.streams.get(turn, [])]
            if reply.message.is_partial and not any(text.startswith(reply.message.text) for text in streamed_texts):
                observations.add_violation(
                    f"partial: {turn} stores {reply.message.text!r}, which the model did not send"
                )
            if not reply.message.is_partial and reply.message.text not in streamed_texts:
                observations.add_violation(
                    f"partial: {turn} has the reply {reply.message.text!r}, which the model did not send"
                )


def _check_silence(observations: Observations, history: TurnHistory, turn: str, mark: int) -> None:
    if any(stream.began_mark > mark for stream in history.streams.get(turn, [])):
        observations.add_violation(f"silence: {turn} asked the model after its end")
    for run in observations.tools:
        if run.turn == turn and run.began_mark > mark:
            observations.add_violation(f"silence: {turn} started {run.call} after its end")


def _check_nothing_runs(
    observations: Observations, history: TurnHistory, turn: str, mark: int, outcome: Interrupted
) -> None:
    for stream in history.streams.get(turn, []):
        if stream.ended_mark is None or stream.ended_mark > mark:
            observations.add_violation(f"silence: a stream of {turn} was still open when its end was published")
    for run in observations.tools:
        is_over = run.ended_mark is not None and run.ended_mark < mark
        if (
            run.turn == turn
            and not is_over
            and run.machine not in observations.deaths
            and run.name not in outcome.left_running
        ):
            observations.add_violation(
                f"settle: {run.call} ({run.name}) of {turn} is still running, and {outcome} does not name it"
            )


def _check_partial_reply(observations: Observations, history: TurnHistory, turn: str, writer: str) -> None:
    """Check that the part of an interrupted reply that the user saw is stored."""
    streams = history.streams.get(turn, [])
    if not streams or streams[-1].end == "done" or not streams[-1].text or streams[-1].machine != writer:
        return
    end = history.end_of(turn)
    assert end is not None
    assert isinstance(end.outcome, Interrupted)
    stop = observations.stops.get(end.outcome.source.removeprefix("user:"))
    streamed_text = streams[-1].text
    seen_text = streamed_text if stop is None or stop.shown is None else streamed_text[: stop.shown]
    replies = history.replies.get(turn, [])
    stored_text = replies[-1].message.text if replies and replies[-1].message.is_partial else ""
    if stored_text not in (seen_text, streamed_text):
        observations.add_violation(f"partial: {turn} was cut after {streamed_text!r}, and {stored_text!r} is stored")


def check_calls(observations: Observations, history: TurnHistory) -> None:
    """Check that each call's result states its true effect, and that late results are not in the transcript."""
    runs: dict[str, ToolRun] = {run.call: run for run in observations.tools}
    for turn, results in history.results.items():
        end = history.ended.get(turn)
        for ended in results:
            result, run = ended.result, runs.get(ended.result.call)
            if result.effect is Effect.NOT_STARTED and run is not None:
                observations.add_violation(f"effect: {result.call} of {turn} is said not to have started, and it did")
            if result.effect is Effect.COMPLETED and (run is None or run.end not in ("finished", "raised")):
                observations.add_violation(f"effect: {result.call} of {turn} is said to be completed, and it is not")
            is_late = run is not None and end is not None and (run.ended_mark is None or run.ended_mark > end.mark)
            if is_late and run is not None and run.text in result.text:
                observations.add_violation(f"late: the late result of {result.call} is in the transcript of {turn}")
