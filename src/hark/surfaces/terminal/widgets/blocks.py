"""The blocks of the displayed conversation. Each block renders itself."""

from rich.console import RenderableType
from rich.text import Text

from hark.protocol.events import CallEnd
from hark.protocol.messages import CallResult
from hark.text.graphemes import shorten
from hark.text.safe_text import sanitize_text
from hark.text.status_text import describe_effect, format_call_title, format_count

LIVE_OUTPUT_LINES = 8
ENDED_OUTPUT_LINES = 6
FOLDED_MESSAGE_LINES = 12
MAX_OPEN_LINES = 400
MAX_LINE_CHARACTERS = 2_000
MAX_CHARACTERS = 200_000
NOTICE_STYLE = "yellow"
SIDE_ANSWER_STYLE = "magenta"


class Block:
    """An item of the conversation. `has_margin` adds blank lines around it. A click toggles `is_open`."""

    def __init__(self, *, has_margin: bool = False, is_foldable: bool = False) -> None:
        self.has_margin = has_margin
        self.is_foldable = is_foldable
        self.is_open = False

    def draw(self) -> RenderableType:
        """Return the block as a Rich renderable."""
        raise NotImplementedError


class UserBlock(Block):
    """A user's message with its receipt."""

    def __init__(self, text: str, author: str = "") -> None:
        super().__init__(has_margin=True, is_foldable=True)
        self.text = text
        self.receipt = ""
        self._author = sanitize_text(author)

    def draw(self) -> RenderableType:
        """Return the message text with the receipt below it."""
        name = f"{self._author}: " if self._author else ""
        lines = sanitize_text(self.text).split("\n")
        limit = MAX_OPEN_LINES if self.is_open else FOLDED_MESSAGE_LINES
        shown = "\n  ".join(shorten(line, MAX_LINE_CHARACTERS) for line in lines[:limit])
        text = Text(f"› {name}{shown}", style="bold", overflow="fold")
        if len(lines) > limit:
            text.append(f"\n  … {format_count(len(lines) - limit, 'more line')}", "not bold dim")
        if self.receipt:
            text.append(f"\n  {sanitize_text(self.receipt)}", "not bold dim")
        return text


class ThoughtBlock(Block):
    """The model's thinking, collapsed to one line until the user opens it."""

    def __init__(self) -> None:
        super().__init__(is_foldable=True)
        self._text = ""
        self._word_count = 0

    def add(self, text: str) -> None:
        """Append a piece of the thinking."""
        self._word_count += len(text.split())
        self._text = (self._text + text)[-MAX_CHARACTERS:]

    def draw(self) -> RenderableType:
        """Return the full text if the block is open, otherwise a one-line summary."""
        folded = f"▸ Thought (about {format_count(self._word_count, 'word')})"
        return Text(sanitize_text(self._text).strip() if self.is_open else folded, style="dim italic", overflow="fold")


class CallBlock(Block):
    """A tool call: its title, live output and result."""

    def __init__(self, name: str, arguments: str) -> None:
        super().__init__(is_foldable=True)
        self._title = format_call_title(name, arguments)
        self._state = ""
        self._text = ""

    def add(self, text: str) -> None:
        """Append a piece of output."""
        self._text = (self._text + text)[-MAX_CHARACTERS:]

    def end(self, result: CallEnd | CallResult) -> None:
        """Replace the live output with the call's result."""
        self._state = describe_effect(result.effect, is_error=result.is_error)
        self._text = result.text[-MAX_CHARACTERS:]

    def draw(self) -> RenderableType:
        """Return the title with the last lines of the output below it."""
        is_fine = self._state in ("", "done")
        state = f" · {self._state}" if self._state else " …"
        style = "cyan" if is_fine else NOTICE_STYLE
        head = Text(f"{'●' if is_fine else '○'} {self._title}{state}", style, overflow="fold")
        limit = MAX_OPEN_LINES if self.is_open else ENDED_OUTPUT_LINES if self._state else LIVE_OUTPUT_LINES
        lines = sanitize_text(self._text).rstrip().split("\n") if self._text.strip() else []
        hidden = len(lines) - limit
        is_diff = any(line.startswith("@@ ") for line in lines)
        if hidden > 0:
            head.append(f"\n  … {format_count(hidden, 'line')} hidden · click or Ctrl+O to show", "dim")
        for line in lines[-limit:] if hidden > 0 else lines:
            head.append(f"\n  {shorten(line, MAX_LINE_CHARACTERS)}", _diff_style(line) if is_diff else "dim")
        return head


class NoticeBlock(Block):
    """A notice to the user."""

    def __init__(self, text: str, style: str = NOTICE_STYLE, *, has_margin: bool = False) -> None:
        super().__init__(has_margin=has_margin)
        self.text = text
        self._style = style

    def draw(self) -> RenderableType:
        """Return the notice's text in its style."""
        return Text(sanitize_text(self.text), self._style, overflow="fold")


def _diff_style(line: str) -> str:
    if line.startswith("+"):
        return "green"
    if line.startswith("-"):
        return "red"
    return "cyan" if line.startswith("@@ ") else "dim"
