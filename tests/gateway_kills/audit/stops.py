"""Checks against the model's replies and the journal that each stop ended the running work."""

from collections.abc import Sequence

from hark.protocol.outcomes import Interrupted
from tests.gateway_kills.audit.chat_case import ChatCase
from tests.gateway_kills.expectations import StopAction
from tests.gateway_kills.model import ModelRequest


class StopAudit:
    """Audits the stops of one chat. Spoken stops are skipped, because they are accepted long before they are
    transcribed.
    """

    def __init__(self, case: ChatCase, requests: Sequence[ModelRequest]) -> None:
        self._case = case
        self._requests = [one for one in requests if one.chat == case.session]
        self.seconds: list[float] = []  # from an accepted stop to the end of the running reply

    def run(self) -> None:
        for stop in self._case.book.stops:
            if stop.chat == self._case.session and stop.action.accepted_at is not None and stop.kind != "voice":
                self._case.count("stops")
                self._check_replies(stop, stop.action.accepted_at)
                self._check_turns(stop, stop.action.accepted_at)

    def _check_replies(self, stop: StopAction, accepted_at: float) -> None:
        outcomes = {reply: turn.outcome for turn in self._case.facts.turns.values() for reply in turn.replies}
        for one in self._requests:
            was_running = one.began < stop.action.at and (one.ended is None or one.ended > accepted_at)
            if not was_running or (stop.kind == "button" and stop.reply != one.reply):
                continue
            late = (one.ended or float("inf")) - accepted_at
            self.seconds.append(late)
            was_interrupted = isinstance(outcomes.get(one.reply), Interrupted)
            if late > self._case.late_seconds and not (was_interrupted and not one.is_complete):
                self._case.add_problem(
                    "stop lost", f"{one.reply} continued for {late:.1f} s after a stop by {stop.kind}"
                )

    def _check_turns(self, stop: StopAction, accepted_at: float) -> None:
        """Check that a stop also ended a turn that was running a tool or waiting for an answer."""
        for turn in self._case.facts.turns.values():
            was_running = turn.began < stop.action.at and turn.ended > accepted_at + self._case.late_seconds
            is_meant = stop.kind != "button" or stop.reply in turn.replies
            if was_running and is_meant and not isinstance(turn.outcome, Interrupted):
                late = turn.ended - accepted_at
                self._case.add_problem("stop lost", f"{turn.id} continued for {late:.1f} s after a stop by {stop.kind}")
