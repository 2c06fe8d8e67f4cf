"""The blocks that a conversation is made of on the screen."""

from textual.content import Content
from textual.widgets import Static

from hark.protocol.events import CallEnd, CallStart, TurnEnd
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached
from hark.surfaces.terminal.safe import safe
from hark.surfaces.terminal.words import call_title, counted, effect_words, end_words

LIVE_LINES = 8
ENDED_LINES = 6
SAID_LINES = 12
OPEN_LINES = 400
LINE_CHARACTERS = 2_000
KEPT_CHARACTERS = 200_000


class Folding(Static):
    """A block of which a part is shown until somebody opens it."""

    def __init__(self, classes: str) -> None:
        super().__init__("", classes=classes, markup=False)
        self.is_open = False

    def unfold(self, *, is_open: bool) -> None:
        """Show much of it, or little."""
        self.is_open = is_open
        self.draw()

    def on_click(self) -> None:
        """Open or fold it."""
        self.unfold(is_open=not self.is_open)

    def draw(self) -> None:
        """Show it as it is now."""
        raise NotImplementedError


class Said(Folding):
    """What a person said, and what became of it."""

    def __init__(self, text: str, author: str = "") -> None:
        super().__init__("said")
        self.text = text
        self._author = safe(author)
        self._receipt = ""
        self.draw()

    def tell(self, words: str) -> None:
        """Show what became of it."""
        self._receipt = words
        self.draw()

    def draw(self) -> None:
        """Show the words, and below them the receipt."""
        name = f"{self._author}: " if self._author else ""
        lines = safe(self.text).split("\n")
        limit = OPEN_LINES if self.is_open else SAID_LINES
        shown = "\n  ".join(line[:LINE_CHARACTERS] for line in lines[:limit])
        parts = [Content.styled(f"› {name}{shown}", "bold")]
        if len(lines) > limit:
            parts.append(Content.styled(f"\n  … {counted(len(lines) - limit, 'more line')}", "dim"))
        if self._receipt:
            parts.append(Content.styled(f"\n  {self._receipt}", "dim"))
        self.update(Content("").join(parts))


class Thought(Folding):
    """The model's thinking, folded to a line until somebody opens it."""

    def __init__(self, text: str = "") -> None:
        super().__init__("thought")
        self._text = ""
        self._words = 0
        self.add(text)

    def add(self, text: str) -> None:
        """Take one more piece."""
        self._words += len(text.split())
        self._text = (self._text + text)[-KEPT_CHARACTERS:]
        self.draw()

    def draw(self) -> None:
        """Show all of it, or a line."""
        self.update(safe(self._text) if self.is_open else f"▸ thought, about {counted(self._words, 'word')}")


class Called(Folding):
    """One call of a tool: its title, its live output, its end."""

    def __init__(self, name: str, arguments: str) -> None:
        super().__init__("called")
        self.tool = name
        self._title = call_title(name, arguments)
        self._state = ""
        self._text = ""
        self.draw()

    @classmethod
    def started(cls, event: CallStart) -> "Called":
        """Return the block of a call that has just started."""
        return cls(event.name, event.arguments)

    def add(self, text: str) -> None:
        """Take one more piece of output."""
        self._text = (self._text + text)[-KEPT_CHARACTERS:]
        self.draw()

    def end(self, event: CallEnd) -> None:
        """Show the call's result."""
        self.finish(event.text, effect_words(event.effect, is_error=event.is_error))

    def finish(self, text: str, state: str) -> None:
        """Show a result and how it came to be."""
        self._state = state
        self._text = text[-KEPT_CHARACTERS:]
        self.set_class(state != "done", "trouble")
        self.draw()

    def draw(self) -> None:
        """Show the title, and below it the last of the output."""
        is_fine = self._state in ("", "done")
        state = f" · {self._state}" if self._state else " …"
        head = Content.styled(
            f"{'●' if is_fine else '○'} {self._title}{state}", "$text-accent" if is_fine else "$text-warning"
        )
        limit = OPEN_LINES if self.is_open else ENDED_LINES if self._state else LIVE_LINES
        lines = safe(self._text).rstrip().split("\n") if self._text.strip() else []
        hidden = len(lines) - limit
        if hidden > 0:
            lines = [f"… {counted(hidden, 'more line')} above (click or Ctrl+O opens)", *lines[-limit:]]
        self.update(Content("\n").join([head, *_coloured([line[:LINE_CHARACTERS] for line in lines])]))


class Told(Static):
    """Something that the person should know."""

    def __init__(self, text: str) -> None:
        super().__init__(safe(text), classes="told", markup=False)

    def say(self, text: str) -> None:
        """Show something else instead."""
        self.update(safe(text))


class Ended(Static):
    """How a turn ended."""

    def __init__(self, event: TurnEnd) -> None:
        match event.outcome:
            case Completed():
                kind = "completed"
            case Interrupted():
                kind = "interrupted"
            case Failed() | LimitReached():
                kind = "failed"
        super().__init__(f"── {safe(end_words(event))}", classes=f"ended {kind}", markup=False)


def _coloured(lines: list[str]) -> list[Content]:
    """Return lines of output; those of a diff in colour."""
    is_diff = any(line.startswith("@@ ") for line in lines)
    return [Content.styled(f"  {line}", _style(line) if is_diff else "dim") for line in lines]


def _style(line: str) -> str:
    if line.startswith("+"):
        return "$text-success"
    if line.startswith("-"):
        return "$text-error"
    return "$text-accent" if line.startswith("@@ ") else "dim"
