"""Holds the wishes to stop against the model's replies and the journal: what a stop met, it ended."""

from collections.abc import Sequence

from hark.protocol.outcomes import Interrupted
from tests.gateway_kills.audit.chat_case import Case
from tests.gateway_kills.expectations import Stop
from tests.gateway_kills.model import Asked


class StopAudit:
    """The stops of one chat. One that was spoken is taken long before its words are known, and left out."""

    def __init__(self, case: Case, asked: Sequence[Asked]) -> None:
        self._case = case
        self._asked = [one for one in asked if one.chat == case.session]
        self.seconds: list[float] = []  # from a taken stop to the end of the reply that it met

    def run(self) -> None:
        for stop in self._case.book.stops:
            if stop.chat == self._case.session and stop.deed.taken is not None and stop.kind != "voice":
                self._case.count("stops")
                self._replies(stop, stop.deed.taken)
                self._turns(stop, stop.deed.taken)

    def _replies(self, stop: Stop, taken: float) -> None:
        outcomes = {reply: turn.outcome for turn in self._case.story.turns.values() for reply in turn.replies}
        for one in self._asked:
            is_met = one.began < stop.deed.at and (one.ended is None or one.ended > taken)
            if not is_met or (stop.kind == "button" and stop.reply != one.reply):
                continue
            late = (one.ended or float("inf")) - taken
            self.seconds.append(late)
            is_cut = isinstance(outcomes.get(one.reply), Interrupted)
            if late > self._case.late_seconds and not (is_cut and not one.is_whole):
                self._case.wrong("stop lost", f"{one.reply} went on for {late:.1f} s after a stop by {stop.kind}")

    def _turns(self, stop: Stop, taken: float) -> None:
        """A turn that runs a tool or waits for an answer is ended, too."""
        for turn in self._case.story.turns.values():
            is_met = turn.began < stop.deed.at and turn.ended > taken + self._case.late_seconds
            is_meant = stop.kind != "button" or stop.reply in turn.replies
            if is_met and is_meant and not isinstance(turn.outcome, Interrupted):
                late = turn.ended - taken
                self._case.wrong("stop lost", f"{turn.id} went on for {late:.1f} s after a stop by {stop.kind}")
