"""The status lines below the conversation: what the agent is doing, read off the events, and the keys to use now."""

from hark.protocol.events import (
    AnyEvent,
    CallEnd,
    CallStart,
    Notice,
    QuestionAsked,
    QuestionClosed,
    ReasoningDelta,
    ReplyDelta,
    StepStart,
    TurnEnd,
    TurnStart,
)
from hark.protocol.names import is_child
from hark.surfaces.terminal.keys import Keys, shown
from hark.text.safe_text import safe_line

IDLE = ""
_PHASES = {StepStart: "waiting for the first token", ReasoningDelta: "thinking", ReplyDelta: "answering"}


class TurnProgress:
    """The phase of the running turn; `line` tells it with its age."""

    def __init__(self) -> None:
        self.turn = ""
        self._phase = IDLE
        self._since = 0.0
        self._started = 0.0
        self._calls: dict[str, tuple[str, float]] = {}
        self._asked = 0

    def join(self, turn: str, now: float) -> None:
        """Begin in the middle of a turn that runs already."""
        if turn and not self.turn:
            self.turn = turn
            self._started = now
            self._enter("working", now)

    def take(self, event: AnyEvent) -> None:
        """Take one more event."""
        match event:
            case TurnStart():
                self.turn = event.turn or ""
                self._started = event.at
                self._calls.clear()
                self._asked = 0
                self._enter("starting", event.at)
            case TurnEnd():
                self.turn = ""
                self._calls.clear()
                self._enter(IDLE, event.at)
            case StepStart() | ReasoningDelta() | ReplyDelta():
                self._enter(_PHASES[type(event)], event.at)
            case CallStart(call=call, name=name):
                self._calls[call] = name, event.at
            case CallEnd(call=call):
                self._calls.pop(call, None)
                if not self._calls:
                    self._enter("going on", event.at)
            case QuestionAsked():
                self._asked += 1
            case QuestionClosed():
                self._asked = max(0, self._asked - 1)
            case Notice(code="retry" | "silence" | "compaction", text=text) if self.turn:
                self._enter(safe_line(text, 120), event.at)
            case _:
                pass

    def line(self, now: float) -> str:
        """Return what goes on, for how long, and the age of the turn; "" when nothing does."""
        if not self.turn:
            return ""
        if self._asked:
            phase = "waits for your answer"
        elif self._calls:
            phase = "running " + ", ".join(f"{name} {_age(now - since)}" for name, since in self._calls.values())
        else:
            phase = f"{self._phase} {_age(now - self._since)}"
        return f"⋯ {phase} · {_age(now - self._started)} in all"

    def _enter(self, phase: str, at: float) -> None:
        if phase != self._phase:
            self._phase = phase
            self._since = at


def _age(seconds: float) -> str:
    seconds = max(0.0, seconds)
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def key_words(keys: Keys, session: str, *, is_editing: bool, is_running: bool) -> str:
    """Return the keys that matter now. `is_editing`: a waiting message is in the input line."""
    stop = shown(keys.stop)
    if is_editing:
        return f"Enter puts it back into the queue · {stop} leaves it as it was"
    if is_child(session):
        return f"Enter steers this child · {stop} stops it alone · {shown(keys.children)} back"
    if is_running:
        return f"Enter sends · {shown(keys.queue)} queues · {shown(keys.steer)} steers · {stop} stops"
    return f"Enter sends · /help · @file · {shown(keys.rewind)} goes back · {shown(keys.leave)} twice leaves"
