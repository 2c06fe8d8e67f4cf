"""What a session knows: the fold of its journal, and nothing else."""

from dataclasses import dataclass, field
from typing import assert_never

from hark.engine.session.queue_rule import Waiting, steers_for, with_message
from hark.engine.turn.transcript import CRASH, Transcript
from hark.protocol.messages import Call, UserMessage
from hark.protocol.names import continued_turn
from hark.protocol.outcomes import Interrupted
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    CallStarted,
    Compacted,
    Edited,
    Granted,
    Handled,
    Held,
    ModeChosen,
    Moved,
    Progress,
    Quarantined,
    Queued,
    Refused,
    Released,
    Remarked,
    Replied,
    Rewound,
    RouteChosen,
    Steered,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hark.protocol.rules import ApprovalMode
from hark.protocol.store import Summary

TITLE_CHARACTERS = 80
# A turn that the program's own end cut is offered to be gone on with; the message that does so has this id.
RESTART, SHUTDOWN = "restart", "shutdown"


@dataclass(slots=True)
class OpenTurn:
    """The turn that runs."""

    id: str
    step: int = 0
    progress: str = ""
    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    started: list[str] = field(default_factory=list[str])


class SessionState:
    """The fold. Only `apply` changes it, so that replaying a journal gives the same state again."""

    def __init__(self) -> None:
        self.length = 0
        self.cursor = 0
        self.turns = 0
        self.turn: OpenTurn | None = None
        self.queue: list[Waiting] = []
        self.is_held = False
        self.transcript = Transcript()
        self.call_ids: set[str] = set()
        self.title = ""
        self.updated_at = 0.0
        self.last_end: TurnEnded | None = None
        self.cut: list[str] = []  # the turns that an end of the program cut, and that nobody has gone on with
        self.tokens = 0
        self.cost = 0.0
        self.chosen_route = ""
        self.last_route = ""
        self.mode: ApprovalMode | None = None
        self.grants: set[str] = set()

    def apply(self, record: AnyRecord) -> None:
        """Take one more record of the journal."""
        self.length += 1
        self.cursor = max(self.cursor, record.inbox)
        self.updated_at = max(self.updated_at, record.at)
        match record:
            case Queued():
                self._queue(record)
            case Held():
                self.is_held = True
            case Released():
                self.is_held = False
            case Edited():
                self._edit(record)
            case Moved():
                self._move(record)
            case Withdrawn():
                self._take((record.message,))
            case TurnStarted():
                self._start(record)
            case Steered():
                self._add_messages(record.turn, record.messages)
            case Progress():
                turn = self._open(record.turn)
                turn.progress = record.text if record.is_first else turn.progress + record.text
            case Replied():
                self._reply(record)
            case CallStarted():
                self._open(record.turn).started.append(record.call)
            case CallEnded():
                self._open(record.turn).calls.pop(record.result.call)
                self.transcript.add(record.turn, record.result)
            case TurnEnded():
                self.transcript.end_turn(record.turn, record.outcome)
                self.turn = None
                self.last_end = record
                if isinstance(record.outcome, Interrupted) and record.outcome.source in (CRASH, RESTART, SHUTDOWN):
                    self.cut.append(record.turn)
                self.tokens += record.usage.input_tokens + record.usage.output_tokens
                self.cost += record.cost or 0.0
            case Compacted():
                self.transcript.compact(record.count, record.summary)
            case RouteChosen():
                self.chosen_route = record.route
            case ModeChosen():
                self.mode = record.mode
            case Granted():
                self.grants.add(record.grant)
            case Rewound():
                self.transcript.rewind(record.turn)
                self.cut = [turn for turn in self.cut if turn in self.transcript.turns]
            case Remarked():
                self.transcript.remark(record.text)
            case Refused() | Handled() | Quarantined():
                pass
            case _:
                assert_never(record)

    def waiting(self, message: str) -> Waiting | None:
        """Return the message of that id, if it still waits."""
        return next((waiting for waiting in self.queue if waiting.message.id == message), None)

    def position(self, message: str) -> int:
        """Return a waiting message's place, from 1."""
        return next(place for place, waiting in enumerate(self.queue, 1) if waiting.message.id == message)

    def steers(self) -> list[UserMessage]:
        """Return the messages that wait for the running turn's next step."""
        return steers_for(self.queue, self.turn.id) if self.turn else []

    def summary(self) -> Summary:
        """Return the session in one line."""
        is_waiting = bool(self.queue) and not self.is_held
        return Summary(self.cursor, self.turn is not None, is_waiting, self.turns, self.title, self.updated_at)

    def _open(self, turn: str) -> OpenTurn:
        if self.turn is None or self.turn.id != turn:
            raise AssertionError(f"{turn} is not the open turn")
        return self.turn

    def _queue(self, record: Queued) -> None:
        self._go_on(record.message)
        waiting = Waiting(record.message, record.delivery, record.turn)
        self.queue = with_message(self.queue, waiting, is_first=record.is_first)

    def _edit(self, record: Edited) -> None:
        for place, waiting in enumerate(self.queue):
            if waiting.message.id == record.message:
                old = waiting.message
                message = UserMessage(old.id, record.text, old.author, old.attachments)
                self.queue[place] = Waiting(message, waiting.delivery, waiting.turn)

    def _move(self, record: Moved) -> None:
        place = self.position(record.message) - 1
        self.queue.insert(record.position - 1, self.queue.pop(place))

    def _take(self, messages: tuple[str, ...]) -> None:
        self.queue = [waiting for waiting in self.queue if waiting.message.id not in messages]

    def turn_of(self, message: str) -> str:
        """Return the turn that took a message; "" when none has."""
        said = zip(reversed(self.transcript.messages), reversed(self.transcript.turns), strict=True)
        return next((turn for one, turn in said if isinstance(one, UserMessage) and one.id == message), "")

    def _add_messages(self, turn: str, messages: tuple[UserMessage, ...]) -> None:
        self._take(tuple(message.id for message in messages))
        for message in messages:
            self._go_on(message)
            self.transcript.add(turn, message)

    def _go_on(self, message: UserMessage) -> None:
        if self.cut and (continued := continued_turn(message.id)):
            self.cut = [turn for turn in self.cut if turn != continued]

    def _start(self, record: TurnStarted) -> None:
        self.turns += 1
        self.turn = OpenTurn(record.turn)
        self._add_messages(record.turn, record.messages)
        if not self.title and record.messages:
            self.title = record.messages[0].text.strip().split("\n")[0][:TITLE_CHARACTERS]

    def _reply(self, record: Replied) -> None:
        turn = self._open(record.turn)
        turn.step = record.step
        self.last_route = record.route or self.last_route
        turn.progress = ""
        turn.calls = {call.id: call for call in record.message.calls}
        turn.started = []
        self.call_ids.update(turn.calls)
        self.transcript.add(record.turn, record.message)
