"""The status lines below the conversation: the agent's current activity, taken from events, and key hints."""

from hark.protocol.commands import RESET
from hark.protocol.events import (
    AnyEvent,
    CallEnd,
    CallStart,
    MessageAccepted,
    Notice,
    QuestionAsked,
    QuestionClosed,
    ReasoningDelta,
    ReplyDelta,
    StepStart,
    TurnEnd,
    TurnStart,
)
from hark.protocol.names import continued_turn, is_child
from hark.protocol.outcomes import Interrupted
from hark.surfaces.terminal.keys import Keys, key_label
from hark.text.safe_text import sanitize_line
from hark.text.status_text import turn_number

IDLE = ""
_ACTIVITIES = {StepStart: "Thinking", ReasoningDelta: "Thinking", ReplyDelta: "Answering"}


class TurnProgress:
    """Tracks the running turn's current activity. `describe` returns the activity with its duration."""

    def __init__(self) -> None:
        self.turn = ""
        self._activity = IDLE
        self._since = 0.0
        self._started = 0.0
        self._calls: dict[str, tuple[str, float]] = {}
        self._open_questions = 0
        self.interrupted_turn = ""  # the last interrupted turn, until it is continued

    def join_running_turn(self, turn: str, now: float) -> None:
        """Start tracking a turn that is already running."""
        if turn and not self.turn:
            self.turn = turn
            self._started = now
            self._set_activity("Working", now)

    def update(self, event: AnyEvent) -> None:
        """Update the activity with an event."""
        match event:
            case TurnStart():
                self.turn = event.turn or ""
                self._started = event.at
                self._calls.clear()
                self._open_questions = 0
                self._set_activity("Thinking", event.at)
            case MessageAccepted(id=message) if continued_turn(message):
                self.interrupted_turn = ""
            case Notice(code="reset"):
                self.interrupted_turn = ""
            case TurnEnd():
                if isinstance(event.outcome, Interrupted) and event.outcome.source != RESET:
                    self.interrupted_turn = event.turn or ""
                self.turn = ""
                self._calls.clear()
                self._set_activity(IDLE, event.at)
            case StepStart() | ReasoningDelta() | ReplyDelta():
                self._set_activity(_ACTIVITIES[type(event)], event.at)
            case CallStart(call=call, name=name):
                self._calls[call] = name, event.at
            case CallEnd(call=call):
                self._calls.pop(call, None)
                if not self._calls:
                    self._set_activity("Thinking", event.at)
            case QuestionAsked():
                self._open_questions += 1
            case QuestionClosed():
                self._open_questions = max(0, self._open_questions - 1)
            case Notice(code="retry" | "silence" | "compaction" | "mcp", text=text) if self.turn:
                self._set_activity(sanitize_line(text, 120), event.at)
            case _:
                pass

    def describe(self, now: float) -> str:
        """Return the current activity, its duration and the duration of the turn, or "" if no turn is running."""
        if not self.turn:
            return ""
        if self._open_questions:
            activity = "Waiting for you"
        elif self._calls:
            calls = [f"{name} {_format_age(now - since)}" for name, since in self._calls.values()]
            activity = f"Running {', '.join(calls)}"
        else:
            activity = f"{self._activity} {_format_age(now - self._since)}"
        total = _format_age(now - self._started)
        return f"⋯ {activity} · {total}" if self._open_questions else f"⋯ {activity} · turn {total}"

    def _set_activity(self, activity: str, started_at: float) -> None:
        if activity != self._activity:
            self._activity = activity
            self._since = started_at


def _format_age(seconds: float) -> str:
    seconds = max(0.0, seconds)
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def format_key_hints(
    keys: Keys, session: str, *, is_editing: bool, is_running: bool, interrupted_turn: str = ""
) -> str:
    """Return the footer's key hints. `is_editing`: a queued message is being edited in the input line.

    `interrupted_turn` is the turn that can be continued, or "".
    """
    stop = key_label(keys.stop)
    if is_editing:
        return f"Enter save · {stop} discard changes"
    if is_child(session):
        return f"Enter steer this child · {stop} stop only this child · {key_label(keys.children)} back"
    if is_running:
        return f"Enter send · {key_label(keys.queue)} queue · {key_label(keys.steer)} steer · {stop} stop"
    if interrupted_turn:
        return f"Enter send · {key_label(keys.resume)} continue turn {turn_number(interrupted_turn)} · /help"
    return f"Enter send · /help · @file · {key_label(keys.rewind)} rewind · {key_label(keys.leave)} twice quit"
