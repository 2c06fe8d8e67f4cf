"""A run's journal and streams by turn, so that each promise can be said in few lines."""

from hark.protocol.records import CallEnded, Replied, TurnEnded, TurnStarted
from tests.simulation.observations import Committed, Ledger, Streamed


class History:
    """What became of each turn."""

    def __init__(self, ledger: Ledger) -> None:
        self.streams: dict[str, list[Streamed]] = {}
        self.started: dict[str, Committed] = {}
        self.ended: dict[str, Committed] = {}
        self.replies: dict[str, list[Replied]] = {}
        self.results: dict[str, list[CallEnded]] = {}
        for streamed in ledger.streams:
            self.streams.setdefault(streamed.turn, []).append(streamed)
        for one in ledger.records:
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
        """Return how a turn ended, if it did."""
        one = self.ended.get(turn)
        return one.record if one and isinstance(one.record, TurnEnded) else None
