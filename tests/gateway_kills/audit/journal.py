"""The facts about messages and turns in a session's journal."""

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
class TurnFacts:
    """One turn according to the journal."""

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
class MessageLocation:
    """Where a message ended up, with its text, time, author and position in the session."""

    location: str
    text: str
    at: float
    id: str = ""
    author: str = ""
    number: int = 0

    @property
    def is_prompt(self) -> bool:
        return self.location not in (QUEUE, WITHDRAWN, ANSWER)


class JournalFacts:
    """A fold of the journal that is independent of Hark's own fold."""

    def __init__(self, records: Sequence[AnyRecord]) -> None:
        self.turns: dict[str, TurnFacts] = {}
        self.locations: list[MessageLocation] = []
        self._queue: dict[str, MessageLocation] = {}
        for record in records:
            self._apply(record)
        self.locations += self._queue.values()

    def _apply(self, record: AnyRecord) -> None:
        match record:
            case TurnStarted() | Steered():
                self.turns.setdefault(record.turn, TurnFacts(record.turn, record.at))
                for message in record.messages:
                    self._add_prompt_message(message, record.turn, record.at)
            case Queued():
                message = record.message
                self._queue[message.id] = MessageLocation(QUEUE, message.text, record.at, message.id, message.author)
            case Edited() if record.message in self._queue:
                self._queue[record.message].text = record.text
            case Withdrawn():
                self._queue.pop(record.message, None)
                self.locations.append(MessageLocation(WITHDRAWN, record.text, record.at, record.message))
            case Replied():
                turn = self.turns[record.turn]
                turn.replies += REPLY.findall(record.message.text)
                turn.texts.append(record.message.text)
            case CallEnded():
                self.locations.append(MessageLocation(ANSWER, record.result.text, record.at))
            case TurnEnded():
                turn = self.turns[record.turn]
                turn.outcome, turn.ended = record.outcome, record.at
                turn.ends += 1
            case _:
                pass

    def _add_prompt_message(self, message: UserMessage, turn: str, at: float) -> None:
        self._queue.pop(message.id, None)
        self.locations.append(MessageLocation(turn, message.text, at, message.id, message.author, len(self.locations)))
