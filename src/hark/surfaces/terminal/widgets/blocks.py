"""The blocks that a conversation is made of on the screen: each knows how it looks."""

from rich.console import RenderableType
from rich.text import Text

from hark.protocol.events import CallEnd, CallStart, TurnEnd
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached
from hark.text.safe_text import safe
from hark.text.status_text import call_title, counted, effect_words, end_words

LIVE_LINES = 8
ENDED_LINES = 6
SAID_LINES = 12
OPEN_LINES = 400
LINE_CHARACTERS = 2_000
KEPT_CHARACTERS = 200_000
NOTICE = "yellow"


class Block:
    """Something in the conversation. `has_air`: a blank line stands around it. A click changes `is_open`."""

    def __init__(self) -> None:
        self.has_air = False
        self.can_fold = False
        self.is_open = False

    def draw(self) -> RenderableType:
        """Return what is to be seen of it now."""
        raise NotImplementedError


class UserBlock(Block):
    """What a person said, and what became of it."""

    def __init__(self, text: str, author: str = "") -> None:
        super().__init__()
        self.has_air = self.can_fold = True
        self.text = text
        self.receipt = ""
        self._author = safe(author)

    def draw(self) -> RenderableType:
        """Return the words, and below them the receipt."""
        name = f"{self._author}: " if self._author else ""
        lines = safe(self.text).split("\n")
        limit = OPEN_LINES if self.is_open else SAID_LINES
        shown = "\n  ".join(line[:LINE_CHARACTERS] for line in lines[:limit])
        text = Text(f"› {name}{shown}", style="bold", overflow="fold")
        if len(lines) > limit:
            text.append(f"\n  … {counted(len(lines) - limit, 'more line')}", "not bold dim")
        if self.receipt:
            text.append(f"\n  {safe(self.receipt)}", "not bold dim")
        return text


class Thought(Block):
    """The model's thinking, folded to a line until somebody opens it."""

    def __init__(self) -> None:
        super().__init__()
        self.can_fold = True
        self._text = ""
        self._words = 0

    def add(self, text: str) -> None:
        """Take one more piece."""
        self._words += len(text.split())
        self._text = (self._text + text)[-KEPT_CHARACTERS:]

    def draw(self) -> RenderableType:
        """Return all of it, or a line."""
        folded = f"▸ thought, about {counted(self._words, 'word')}"
        return Text(safe(self._text).strip() if self.is_open else folded, style="dim italic", overflow="fold")


class Called(Block):
    """One call of a tool: its title, its live output, its end."""

    def __init__(self, name: str, arguments: str) -> None:
        super().__init__()
        self.can_fold = True
        self._title = call_title(name, arguments)
        self._state = ""
        self._text = ""

    @classmethod
    def started(cls, event: CallStart) -> "Called":
        """Return the block of a call that has just started."""
        return cls(event.name, event.arguments)

    def add(self, text: str) -> None:
        """Take one more piece of output."""
        self._text = (self._text + text)[-KEPT_CHARACTERS:]

    def end(self, event: CallEnd) -> None:
        """Take the call's result."""
        self.finish(event.text, effect_words(event.effect, is_error=event.is_error))

    def finish(self, text: str, state: str) -> None:
        """Take a result and how it came to be."""
        self._state = state
        self._text = text[-KEPT_CHARACTERS:]

    def draw(self) -> RenderableType:
        """Return the title, and below it the last of the output."""
        is_fine = self._state in ("", "done")
        state = f" · {self._state}" if self._state else " …"
        head = Text(f"{'●' if is_fine else '○'} {self._title}{state}", "cyan" if is_fine else NOTICE, overflow="fold")
        limit = OPEN_LINES if self.is_open else ENDED_LINES if self._state else LIVE_LINES
        lines = safe(self._text).rstrip().split("\n") if self._text.strip() else []
        hidden = len(lines) - limit
        is_diff = any(line.startswith("@@ ") for line in lines)
        if hidden > 0:
            head.append(f"\n  … {counted(hidden, 'more line')} above (click or Ctrl+O opens)", "dim")
        for line in lines[-limit:] if hidden > 0 else lines:
            head.append(f"\n  {line[:LINE_CHARACTERS]}", _diff_style(line) if is_diff else "dim")
        return head


class Told(Block):
    """Something that the person should know."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def draw(self) -> RenderableType:
        """Return it."""
        return Text(safe(self.text), NOTICE, overflow="fold")


class Ended(Block):
    """How a turn ended."""

    def __init__(self, event: TurnEnd) -> None:
        super().__init__()
        self._words = safe(end_words(event))
        match event.outcome:
            case Completed():
                self._style = "dim"
            case Interrupted():
                self._style = NOTICE
            case Failed() | LimitReached():
                self._style = "bold red"

    def draw(self) -> RenderableType:
        """Return it."""
        return Text(f"── {self._words}", self._style, overflow="fold")


def _diff_style(line: str) -> str:
    if line.startswith("+"):
        return "green"
    if line.startswith("-"):
        return "red"
    return "cyan" if line.startswith("@@ ") else "dim"
