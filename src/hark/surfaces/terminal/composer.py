"""The input line: always live, and nothing that was typed in it is ever lost."""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from hark.surfaces.terminal.history import History
from hark.surfaces.terminal.keys import FIXED, Keys

_CHOOSING = {"up": "choice_up", "down": "choice_down", "tab": "complete", "enter": "complete"}


class Composer(TextArea):
    """Text of one or more lines. It posts what the person wants; it decides nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+u", "delete_to_start_of_line", show=False)]

    class Wanted(Message):
        """The person wants something: `act` is send, queue, steer, stop, leave, editor, ..."""

        def __init__(self, act: str) -> None:
            super().__init__()
            self.act = act

    class Typed(Message):
        """A single printable key in an empty line: it may be an answer, else it is to be inserted."""

        def __init__(self, character: str) -> None:
            super().__init__()
            self.character = character

    def __init__(self, keys: Keys, history: History) -> None:
        super().__init__(id="composer", soft_wrap=True, compact=True, highlight_cursor_line=False)
        self.cursor_blink = False
        self.history_of_sent = history
        self.asks_first = False  # a question waits that a single key may answer
        self.has_choices = False  # completions are shown
        self._newline = keys.newline
        self._acts = {**{key: act for act, key in keys.acts().items()}, **FIXED}

    def put(self, text: str) -> None:
        """Show this text, the cursor behind it."""
        self.text = text
        self.move_cursor(self.document.end)

    def take(self) -> str:
        """Return what was typed and empty the line; it is kept in the history."""
        text = self.text.strip("\n").rstrip()
        if text.strip():
            self.history_of_sent.add(text)
        self.put("")
        return text if text.strip() else ""

    async def _on_key(self, event: events.Key) -> None:
        act = self._act(event)
        if act:
            self.post_message(self.Wanted(act))
        elif event.key in (self._newline, "shift+enter", "alt+enter"):
            self.insert("\n")
        elif event.key == "enter":  # behind a backslash
            row, column = self.cursor_location
            self.replace("\n", (row, column - 1), (row, column))
        elif event.key in ("up", "down") and self._walk(event.key):
            pass
        elif self.asks_first and not self.text and event.is_printable and event.character:
            self.post_message(self.Typed(event.character))
        else:
            await super()._on_key(event)
            return
        event.prevent_default()
        event.stop()

    def _act(self, event: events.Key) -> str:
        """Return what a key asks for, "" when it is one of the line's own."""
        if self.has_choices and event.key in _CHOOSING:
            return _CHOOSING[event.key]
        if event.key == "enter":
            return "" if self._before_cursor().endswith("\\") else "send"
        act = self._acts.get(event.key, "")
        if act == "end" and self.text:
            return ""  # Ctrl+D deletes to the right as long as there is something
        return act

    def _before_cursor(self) -> str:
        row, column = self.cursor_location
        return self.document.get_line(row)[:column]

    def _walk(self, key: str) -> bool:
        """Go through what was sent before, from the first or the last line; False when the cursor moves instead."""
        row, _ = self.cursor_location
        if key == "up" and row == 0:
            text = self.history_of_sent.older(self.text)
        elif key == "down" and row == self.document.line_count - 1:
            text = self.history_of_sent.newer()
        else:
            return False
        if text is not None:
            self.put(text)
        return text is not None
