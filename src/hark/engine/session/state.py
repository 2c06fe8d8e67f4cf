"""A session's state: the fold of its journal, and nothing else."""

from dataclasses import dataclass, field, replace
from typing import assert_never

from hark.engine.session.queue_rule import QUEUE_FULL, QueuedMessage, insert_message, steers_for
from hark.engine.turn.transcript import Transcript
from hark.protocol.commands import PROGRAM_ENDS, RESET
from hark.protocol.messages import Call, CallResult, Effect, UserMessage
from hark.protocol.names import continued_turn, is_from_user, is_wake_up, wake_up_id
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
    PauseRequested,
    Quarantined,
    Queued,
    QueueHeld,
    QueueReleased,
    Replied,
    ReplyTextSaved,
    ResetRequested,
    ResetUndone,
    Rewound,
    RouteChosen,
    SessionReset,
    Steered,
    TurnEnded,
    TurnStarted,
    UsageRecorded,
    WakeUpsHeld,
    Withdrawn,
    WorkEnded,
    WorkStarted,
)
from hark.protocol.rules import ApprovalMode
from hark.protocol.store import SessionSummary
from hark.text.graphemes import safe_cut

TITLE_CHARACTERS = 80
MAX_RESUMABLE_TURNS = 20
MAX_REFUSED_MESSAGES = 1_000


@dataclass(slots=True)
class RunningTurnState:
    """The state of the running turn. `started` has the start time of each started call.

    `is_pausing` and `is_resetting`: when the turn ends, the queue is held or the session is reset.
    """

    id: str
    task: str = ""
    started_at: float = 0.0
    step: int = 0
    progress: str = ""
    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    started: dict[str, float] = field(default_factory=dict[str, float])
    ended_work: set[str] = field(default_factory=set[str])  # may end before the record of the call that it outlived
    is_pausing: bool = False
    is_resetting: bool = False


@dataclass(frozen=True, slots=True)
class ClearedConversation:
    """The parts of a session that a reset cleared and that can be restored."""

    transcript: Transcript
    chosen_route: str
    mode: ApprovalMode | None


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
        self.resumable_turns: dict[str, str] = {}  # interrupted turns that were not continued, and the sources
        self.cleared: ClearedConversation | None = None  # by the last reset
        self.refused: dict[str, None] = {}  # the last messages that the full queue refused
        self.tokens = 0
        self.cost = 0.0
        self.chosen_route = ""
        self.last_route = ""
        self.mode: ApprovalMode | None = None
        self.grants: set[str] = set()
        self.work: dict[str, str] = {}  # running background work and its name; the name of a child is ""
        self.reports: list[UserMessage] = []  # about ended work, not delivered yet
        self.waking_reports: set[str] = set()  # the reports that may start a turn
        self.wake_ups = 0  # turns that reports started since the user's last message
        self.are_wake_ups_held = False

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
                self._get_open_turn(record.turn).started[record.call] = record.at
            case CallEnded():
                self._get_open_turn(record.turn).calls.pop(record.result.call)
                self.transcript.add(record.turn, record.result)
                self._add_child(record.result)
            case TurnEnded():
                self._end(record)
            case UsageRecorded():
                self._add_usage(record)
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
                if not record.turn:
                    self._remove_reports([report.id for report in self.reports])
                kept_turns = set(self.transcript.turns)
                self.resumable_turns = {
                    turn: source for turn, source in self.resumable_turns.items() if turn in kept_turns
                }
            case SessionReset():
                self._reset()
            case ResetUndone():
                self._undo_reset()
            case PauseRequested():
                self._get_open_turn(record.turn).is_pausing = True
            case ResetRequested():
                self._get_open_turn(record.turn).is_resetting = True
            case NoteAdded():
                self.transcript.add_note(record.text)
            case WorkStarted():
                self.work[record.work] = record.name
            case WorkEnded():
                self._end_work(record)
            case WakeUpsHeld():
                self.are_wake_ups_held = True
            case CommandRefused(code=code, command=command) if code == QUEUE_FULL:
                self.refused = dict.fromkeys([*self.refused, command][-MAX_REFUSED_MESSAGES:])
            case CommandRefused() | CommandHandled() | Quarantined():
                pass
            case _:
                assert_never(record)

    def can_wake(self, max_wake_ups: int) -> bool:
        """Return whether a report may start a turn now, if no turn is running."""
        is_allowed = not self.are_wake_ups_held and not self.is_held and self.wake_ups < max_wake_ups
        return is_allowed and bool(self.waking_reports)

    @property
    def cut_turns(self) -> list[str]:
        """The turns that a restart, shutdown or crash interrupted, and that were not continued. They are offered."""
        return [turn for turn, source in self.resumable_turns.items() if source in PROGRAM_ENDS]

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
        # Running work counts, so that after a crash a gateway opens the session and reports the loss.
        is_waiting = is_waiting or (bool(self.work or self.waking_reports) and not self.are_wake_ups_held)
        return SessionSummary(self.cursor, self.turn is not None, is_waiting, self.turns, self.title, self.updated_at)

    def _reset(self) -> None:
        self.cleared = ClearedConversation(self.transcript, self.chosen_route, self.mode)
        self.transcript = Transcript()
        self.mode, self.chosen_route = None, ""
        self.grants.clear()
        self._remove_reports([report.id for report in self.reports])
        self.resumable_turns.clear()
        self.is_held, self.wake_ups = False, 0

    def _undo_reset(self) -> None:
        """Restore the cleared conversation, before the messages that were added since. Grants are not restored."""
        if self.cleared is None:
            return
        later, self.transcript = self.transcript, self.cleared.transcript
        for turn, message in zip(later.turns, later.messages, strict=True):
            self.transcript.add(turn, message)
        self.chosen_route = self.chosen_route or self.cleared.chosen_route
        self.mode = self.mode or self.cleared.mode
        self.cleared = None

    def _add_usage(self, record: TurnEnded | UsageRecorded) -> None:
        self.tokens += record.usage.input_tokens + record.usage.output_tokens
        self.cost += record.cost or 0.0

    def _get_open_turn(self, turn: str) -> RunningTurnState:
        if self.turn is None or self.turn.id != turn:
            raise AssertionError(f"{turn} is not the open turn")
        return self.turn

    def _queue(self, record: Queued) -> None:
        self._mark_continued(record.message)
        self._mark_user_message(record.inbox, (record.message,))
        item = QueuedMessage(record.message, record.delivery, record.turn, record.is_first)
        self.queue = insert_message(self.queue, item)

    def _edit(self, record: Edited) -> None:
        for index, item in enumerate(self.queue):
            if item.message.id == record.message:
                old = item.message
                message = UserMessage(old.id, record.text, old.author, old.attachments)
                self.queue[index] = replace(item, message=message)

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
            self.resumable_turns.pop(continued, None)

    def _start(self, record: TurnStarted) -> None:
        self.turns += 1
        self.turn = RunningTurnState(record.turn, record.task, record.at)
        self._mark_user_message(record.inbox, record.messages)
        self._remove_reports([message.id for message in record.messages])
        if record.messages and all(is_wake_up(message.id) for message in record.messages):
            self.wake_ups += 1
        self._add_messages(record.turn, record.messages)
        if not self.title and record.messages:
            title = record.messages[0].text.strip().split("\n")[0]
            self.title = title[: safe_cut(title, TITLE_CHARACTERS)]

    def _mark_user_message(self, inbox: int, messages: tuple[UserMessage, ...]) -> None:
        """Allow wake-ups again if a new message is from the user. A message that was queued before doesn't count."""
        if inbox and any(is_from_user(message.id) for message in messages):
            self.wake_ups, self.are_wake_ups_held = 0, False

    def _add_child(self, result: CallResult) -> None:
        if result.effect is Effect.CONTINUES and not (self.turn and result.call in self.turn.ended_work):
            self.work[result.call] = ""

    def _end_work(self, record: WorkEnded) -> None:
        self.work.pop(record.work, None)
        if self.turn is not None:
            self.turn.ended_work.add(record.work)
        self._remove_reports([wake_up_id(record.work)])
        if record.report is not None:
            self.reports.append(record.report)
            if record.wakes:
                self.waking_reports.add(record.report.id)

    def _remove_reports(self, messages: list[str]) -> None:
        if self.reports:
            self.reports = [report for report in self.reports if report.id not in messages]
            self.waking_reports.difference_update(messages)

    def _end(self, record: TurnEnded) -> None:
        if not record.task:  # old journals have no task here: their notes stay, because later records count them
            self.transcript.add_outcome_note(record.turn, record.outcome)
        is_task = self.turn is not None and bool(self.turn.task)
        if isinstance(record.outcome, Interrupted) and record.outcome.source != RESET and not is_task:
            self.resumable_turns[record.turn] = record.outcome.source
            if len(self.resumable_turns) > MAX_RESUMABLE_TURNS:
                del self.resumable_turns[next(iter(self.resumable_turns))]
        self.turn = None
        self.last_end = record
        self._add_usage(record)

    def _add_reply(self, record: Replied) -> None:
        turn = self._get_open_turn(record.turn)
        turn.step = record.step
        self.last_route = record.route or self.last_route
        turn.progress = ""
        turn.calls = {call.id: call for call in record.message.calls}
        turn.started = {}
        self.call_ids.update(turn.calls)
        self.transcript.add(record.turn, record.message)
