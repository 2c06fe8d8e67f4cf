"""What the agent is doing right now, in a few words: read off the events."""

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
from hark.text.safe_text import safe_line

IDLE = ""


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
            case StepStart():
                self._enter("waiting for the first token", event.at)
            case ReasoningDelta():
                self._enter("thinking", event.at)
            case ReplyDelta():
                self._enter("answering", event.at)
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
        """Return what goes on and for how long, "" when nothing does."""
        if not self.turn:
            return ""
        if self._asked:
            return "waits for your answer"
        if self._calls:
            tools = ", ".join(f"{name} {_age(now - since)}" for name, since in self._calls.values())
            return f"running {tools}"
        return f"{self._phase} {_age(now - self._since)}"

    def total(self, now: float) -> str:
        """Return how long the turn has run."""
        return _age(now - self._started) if self.turn else ""

    def _enter(self, phase: str, at: float) -> None:
        if phase != self._phase:
            self._phase = phase
            self._since = at


def _age(seconds: float) -> str:
    seconds = max(0.0, seconds)
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
