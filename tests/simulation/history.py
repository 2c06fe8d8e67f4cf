"""A run's journal and streams grouped by turn, so that each guarantee can be checked in a few lines."""

from hark.protocol.records import CallEnded, Replied, TurnEnded, TurnStarted
from tests.simulation.observations import CommittedRecord, Observations, StreamRecord


class TurnHistory:
    """The records and model streams of a run, grouped by turn."""

    def __init__(self, observations: Observations) -> None:
        self.streams: dict[str, list[StreamRecord]] = {}
        self.started: dict[str, CommittedRecord] = {}
        self.ended: dict[str, CommittedRecord] = {}
        self.replies: dict[str, list[Replied]] = {}
        self.results: dict[str, list[CallEnded]] = {}
        for stream in observations.streams:
            self.streams.setdefault(stream.turn, []).append(stream)
        for one in observations.records:
            match one.record:
                case TurnStarted(turn=turn):
                    self.started[turn] = one
                case TurnEnded(turn=turn):
                    self.ended[turn] = one
                case Replied(turn=turn):
                    self.replies.setdefault(turn, []).append(one.record)
                case CallEnded(turn=turn):
                    self.results.setdefault(turn, []).append(one.record)
                case _:
                    pass

    def end_of(self, turn: str) -> TurnEnded | None:
        """Return a turn's end record, or None if the turn is still open."""
        one = self.ended.get(turn)
        return one.record if one and isinstance(one.record, TurnEnded) else None
