"""A session's state: the fold of its journal, and nothing else."""

from dataclasses import dataclass, field
from typing import assert_never

from hark.engine.session.queue_rule import QueuedMessage, insert_message, steers_for
from hark.engine.turn.transcript import CRASH, Transcript
from hark.protocol.messages import Call, UserMessage
from hark.protocol.names import continued_turn
from hark.protocol.outcomes import Interrupted
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    CallStarted,
    CommandHandled,
    CommandRefused,
    Compacted,
    Edited,
    Granted,
    ModeChosen,
    Moved,
    NoteAdded,
    Quarantined,
    Queued,
    QueueHeld,
    QueueReleased,
    Replied,
    ReplyTextSaved,
    Rewound,
    RouteChosen,
    Steered,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hark.protocol.rules import ApprovalMode
from hark.protocol.store import SessionSummary
from hark.text.graphemes import safe_cut

TITLE_CHARACTERS = 80
# Turns interrupted by the program's end (a restart, shutdown or crash) are offered for continuation.
RESTART, SHUTDOWN = "restart", "shutdown"


@dataclass(slots=True)
class RunningTurnState:
    """The state of the running turn."""

    id: str
    step: int = 0
    progress: str = ""
    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    started: list[str] = field(default_factory=list[str])


class SessionState:
    """The fold of a journal. Only `apply` changes the state, so replaying the journal gives the same state."""

    def __init__(self) -> None:
        self.length = 0
        self.cursor = 0
        self.turns = 0
        self.turn: RunningTurnState | None = None
        self.queue: list[QueuedMessage] = []
        self.is_held = False
        self.transcript = Transcript()
        self.call_ids: set[str] = set()
        self.title = ""
        self.updated_at = 0.0
        self.last_end: TurnEnded | None = None
        self.resumable_turns: list[str] = []  # turns interrupted by the program's end, and not continued yet
        self.tokens = 0
        self.cost = 0.0
        self.chosen_route = ""
        self.last_route = ""
        self.mode: ApprovalMode | None = None
        self.grants: set[str] = set()

    def apply(self, record: AnyRecord) -> None:
        """Apply the next record of the journal."""
        self.length += 1
        self.cursor = max(self.cursor, record.inbox)
        self.updated_at = max(self.updated_at, record.at)
        match record:
            case Queued():
                self._queue(record)
            case QueueHeld():
                self.is_held = True
            case QueueReleased():
                self.is_held = False
            case Edited():
                self._edit(record)
            case Moved():
                self._move(record)
            case Withdrawn():
                self._dequeue((record.message,))
            case TurnStarted():
                self._start(record)
            case Steered():
                self._add_messages(record.turn, record.messages)
            case ReplyTextSaved():
                turn = self._get_open_turn(record.turn)
                turn.progress = record.text if record.is_first else turn.progress + record.text
            case Replied():
                self._add_reply(record)
            case CallStarted():
                self._get_open_turn(record.turn).started.append(record.call)
            case CallEnded():
                self._get_open_turn(record.turn).calls.pop(record.result.call)
                self.transcript.add(record.turn, record.result)
            case TurnEnded():
                self.transcript.add_outcome_note(record.turn, record.outcome)
                self.turn = None
                self.last_end = record
                if isinstance(record.outcome, Interrupted) and record.outcome.source in (CRASH, RESTART, SHUTDOWN):
                    self.resumable_turns.append(record.turn)
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
                self.resumable_turns = [turn for turn in self.resumable_turns if turn in self.transcript.turns]
            case NoteAdded():
                self.transcript.add_note(record.text)
            case CommandRefused() | CommandHandled() | Quarantined():
                pass
            case _:
                assert_never(record)

    def find_queued(self, message: str) -> QueuedMessage | None:
        """Return the queued message with that id, or None."""
        return next((item for item in self.queue if item.message.id == message), None)

    def position_of(self, message: str) -> int:
        """Return a queued message's position, counted from 1."""
        return next(position for position, item in enumerate(self.queue, 1) if item.message.id == message)

    def pending_steers(self) -> list[UserMessage]:
        """Return the messages that are pending for the running turn's next step."""
        return steers_for(self.queue, self.turn.id) if self.turn else []

    def summary(self) -> SessionSummary:
        """Return the session's summary for session lists."""
        is_waiting = bool(self.queue) and not self.is_held
        return SessionSummary(self.cursor, self.turn is not None, is_waiting, self.turns, self.title, self.updated_at)

    def _get_open_turn(self, turn: str) -> RunningTurnState:
        if self.turn is None or self.turn.id != turn:
            raise AssertionError(f"{turn} is not the open turn")
        return self.turn

    def _queue(self, record: Queued) -> None:
        self._mark_continued(record.message)
        item = QueuedMessage(record.message, record.delivery, record.turn)
        self.queue = insert_message(self.queue, item, is_first=record.is_first)

    def _edit(self, record: Edited) -> None:
        for index, item in enumerate(self.queue):
            if item.message.id == record.message:
                old = item.message
                message = UserMessage(old.id, record.text, old.author, old.attachments)
                self.queue[index] = QueuedMessage(message, item.delivery, item.turn)

    def _move(self, record: Moved) -> None:
        index = self.position_of(record.message) - 1
        self.queue.insert(record.position - 1, self.queue.pop(index))

    def _dequeue(self, messages: tuple[str, ...]) -> None:
        self.queue = [item for item in self.queue if item.message.id not in messages]

    def turn_of_message(self, message: str) -> str:
        """Return the turn that consumed a message, or ""."""
        newest_first = zip(reversed(self.transcript.messages), reversed(self.transcript.turns), strict=True)
        return next((turn for one, turn in newest_first if isinstance(one, UserMessage) and one.id == message), "")

    def _add_messages(self, turn: str, messages: tuple[UserMessage, ...]) -> None:
        self._dequeue(tuple(message.id for message in messages))
        for message in messages:
            self._mark_continued(message)
            self.transcript.add(turn, message)

    def _mark_continued(self, message: UserMessage) -> None:
        if self.resumable_turns and (continued := continued_turn(message.id)):
            self.resumable_turns = [turn for turn in self.resumable_turns if turn != continued]

    def _start(self, record: TurnStarted) -> None:
        self.turns += 1
        self.turn = RunningTurnState(record.turn)
        self._add_messages(record.turn, record.messages)
        if not self.title and record.messages:
            title = record.messages[0].text.strip().split("\n")[0]
            self.title = title[: safe_cut(title, TITLE_CHARACTERS)]

    def _add_reply(self, record: Replied) -> None:
        turn = self._get_open_turn(record.turn)
        turn.step = record.step
        self.last_route = record.route or self.last_route
        turn.progress = ""
        turn.calls = {call.id: call for call in record.message.calls}
        turn.started = []
        self.call_ids.update(turn.calls)
        self.transcript.add(record.turn, record.message)
