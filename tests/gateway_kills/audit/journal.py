"""What a session's journal says of messages and turns."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Outcome
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    Edited,
    Queued,
    Replied,
    Steered,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from tests.gateway_kills.expectations import REPLY

QUEUE, WITHDRAWN, ANSWER = "queue", "withdrawn", "answer"


@dataclass(slots=True)
class Turn:
    """One turn, as the journal has it."""

    id: str
    began: float = 0.0
    replies: list[str] = field(default_factory=list[str])
    texts: list[str] = field(default_factory=list[str])
    outcome: Outcome | None = None
    ended: float = 0.0
    ends: int = 0

    @property
    def number(self) -> int:
        return int(self.id.rpartition(".t")[2])


@dataclass(slots=True)
class Place:
    """Where a message came to stand: its words there, when, whose, and its place among all of the session."""

    where: str
    text: str
    at: float
    id: str = ""
    author: str = ""
    number: int = 0

    @property
    def is_prompt(self) -> bool:
        return self.where not in (QUEUE, WITHDRAWN, ANSWER)


class Story:
    """The fold of a journal, made anew here: the product's own fold is not asked."""

    def __init__(self, records: Sequence[AnyRecord]) -> None:
        self.turns: dict[str, Turn] = {}
        self.places: list[Place] = []
        self._queue: dict[str, Place] = {}
        for record in records:
            self._note(record)
        self.places += self._queue.values()

    def _note(self, record: AnyRecord) -> None:
        match record:
            case TurnStarted() | Steered():
                self.turns.setdefault(record.turn, Turn(record.turn, record.at))
                for message in record.messages:
                    self._take(message, record.turn, record.at)
            case Queued():
                message = record.message
                self._queue[message.id] = Place(QUEUE, message.text, record.at, message.id, message.author)
            case Edited() if record.message in self._queue:
                self._queue[record.message].text = record.text
            case Withdrawn():
                self._queue.pop(record.message, None)
                self.places.append(Place(WITHDRAWN, record.text, record.at, record.message))
            case Replied():
                turn = self.turns[record.turn]
                turn.replies += REPLY.findall(record.message.text)
                turn.texts.append(record.message.text)
            case CallEnded():
                self.places.append(Place(ANSWER, record.result.text, record.at))
            case TurnEnded():
                turn = self.turns[record.turn]
                turn.outcome, turn.ended = record.outcome, record.at
                turn.ends += 1
            case _:
                pass

    def _take(self, message: UserMessage, turn: str, at: float) -> None:
        self._queue.pop(message.id, None)
        self.places.append(Place(turn, message.text, at, message.id, message.author, len(self.places)))
