"""What a session's journal has about one turn."""

from collections.abc import Iterable

from hark.protocol.messages import Call
from hark.protocol.outcomes import Timings, Usage
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    CallStarted,
    Progress,
    Quarantined,
    Queued,
    Replied,
    Steered,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)

Own = Steered | Replied | Progress | CallStarted | CallEnded | TurnEnded


class TurnRecords:
    """One turn's records, and those of messages that met it; by id where they have one."""

    def __init__(self, turn: str, records: Iterable[AnyRecord]) -> None:
        self.turn = turn
        self.start = TurnStarted(turn=turn, messages=())
        self.end: TurnEnded | None = None
        self.replies: list[Replied] = []
        self.calls: dict[str, Call] = {}
        self.call_starts: dict[str, float] = {}
        self.call_ends: dict[str, CallEnded] = {}
        self.late: dict[str, str] = {}
        self.queued: dict[str, Queued] = {}
        self.steered: dict[str, Steered] = {}
        self.started_by: dict[str, str] = {}
        self.withdrawn: dict[str, str] = {}
        self._times: list[float] = []
        for record in records:
            self._take(record)

    @property
    def timings(self) -> Timings | None:
        """What was measured. A crash leaves nothing, and a running turn has nothing yet."""
        return self.end.timings if self.end and self.end.timings.total > 0 else None

    @property
    def usage(self) -> Usage:
        """The tokens of all its replies."""
        return self.end.usage if self.end else sum((reply.usage for reply in self.replies), Usage())

    @property
    def known_total(self) -> float:
        """The ms from its start to the last sign of life; what settled a crash came later, from another process."""
        is_crash = self.end is not None and self.timings is None
        end_at = self.end.at if self.end and is_crash else float("inf")
        return max((self.since(at) for at in self._times if at < end_at), default=0.0)

    def since(self, at: float) -> float:
        """Return the ms from the turn's start."""
        return max(0.0, (at - self.start.at) * 1000)

    def _take(self, record: AnyRecord) -> None:
        match record:
            case Queued(message=message):
                self.queued[message.id] = record
            case Withdrawn(message=name, reason=reason):
                self.withdrawn[name] = reason
            case TurnStarted(turn=turn, messages=messages):
                self.started_by.update((message.id, turn) for message in messages)
                if turn == self.turn:
                    self.start = record
            case Quarantined(turn=turn, call=call, text=text):
                if turn == self.turn:
                    self.late[call] = text
            case Steered() | Replied() | Progress() | CallStarted() | CallEnded() | TurnEnded():
                if record.turn == self.turn:
                    self._take_own(record)
            case _:
                pass

    def _take_own(self, record: Own) -> None:
        match record:
            case Steered(messages=messages):
                self.steered.update((message.id, record) for message in messages)
            case Replied(message=message):
                self.replies.append(record)
                self.calls.update((call.id, call) for call in message.calls)
            case CallStarted(call=call, at=at):
                self.call_starts[call] = at
            case CallEnded(result=result):
                self.call_ends[result.call] = record
            case TurnEnded():
                self.end = record
            case Progress():
                pass
        self._times.append(record.at)
