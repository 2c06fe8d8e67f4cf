"""The input line: always live, and nothing that was typed in it is ever lost."""

from collections.abc import Callable
from typing import ClassVar

from msgspec.structs import asdict
from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import TextArea

from hark.protocol.receipts import QueueItem
from hark.surfaces.terminal.history import History
from hark.surfaces.terminal.keys import FIXED, Keys
from hark.surfaces.terminal.widgets.question import QuestionPanel

_CHOOSING = {"up": "choice_up", "down": "choice_down", "tab": "complete", "enter": "complete"}


class Composer(TextArea):
    """Text of one or more lines. It says what the person wants; it decides nothing.

    `press` gets what a key asks for (send, queue, steer, stop, ...) and when it was pressed; `answer` gets the answer
    that a single key in an empty line stands for. They are called at once: the next key may be there already.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+u", "delete_to_start_of_line", show=False)]

    def __init__(
        self,
        keys: Keys,
        history: History,
        questions: QuestionPanel,
        press: Callable[[str, float], None],
        answer: Callable[[str], None],
    ) -> None:
        super().__init__(id="composer", soft_wrap=True, compact=True, highlight_cursor_line=False)
        self.cursor_blink = False
        self.history_of_sent = history
        self.has_choices = False  # completions are shown
        self.typed_under = ""  # the question that was on the screen when the person began to type
        self.edited: QueueItem | None = None  # a waiting message that is in the line
        self.stashed = ""  # what was in the line before it
        self._questions = questions
        self._press = press
        self._answer = answer
        self._newline = keys.newline
        self._acts = {key: act for act, key in asdict(keys).items() if act != "newline"} | FIXED

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

    def begin_edit(self, item: QueueItem) -> None:
        """Have a waiting message in the line until `end_edit`."""
        if self.edited is None:
            self.stashed = self.text
        self.edited = item
        self.put(item.text)
        self.focus()

    def end_edit(self) -> QueueItem | None:
        """Put back what was in the line before; return the message that was edited."""
        item, self.edited = self.edited, None
        if item is not None and self.text != item.text:
            self.take()  # Up brings it back, whatever becomes of it
        self.put(self.stashed)
        self.stashed = ""
        return item

    def before_cursor(self) -> str:
        """Return the text of the cursor's line before the cursor."""
        row, column = self.cursor_location
        return self.document.get_line(row)[:column]

    async def _on_key(self, event: events.Key) -> None:
        act = self._act(event)
        if act:
            self._press(act, event.time)
        elif event.key in (self._newline, "shift+enter", "alt+enter"):
            self.insert("\n")
        elif event.key == "enter":  # behind a backslash
            row, column = self.cursor_location
            self.replace("\n", (row, column - 1), (row, column))
        elif not self._walk(event.key) and not self._is_answer(event) and not await self._edit(event.key):
            self._begin()
            return  # Textual calls the text area's own way of taking it next
        event.prevent_default()
        event.stop()

    async def _edit(self, key: str) -> bool:
        """Move or delete at once: Textual would when the key has come back to the app, behind the next letters."""
        bindings = self._bindings.key_to_bindings.get(key, [])
        for binding in bindings[:1]:
            await self.run_action(binding.action)
        return bool(bindings)

    def _is_answer(self, event: events.Key) -> bool:
        key = event.character if event.is_printable and not self.text else None
        choice = self._questions.choice(key) if key else None
        if choice is not None:
            self._answer(choice)
        return choice is not None

    def _act(self, event: events.Key) -> str:
        """Return what a key asks for, "" when it is one of the line's own."""
        if self.has_choices and event.key in _CHOOSING:
            return _CHOOSING[event.key]
        if event.key == "enter":
            return "" if self.before_cursor().endswith("\\") else "send"
        act = self._acts.get(event.key, "")
        if act == "end" and self.text:
            return ""  # Ctrl+D deletes to the right as long as there is something
        return act

    async def _on_paste(self, event: events.Paste) -> None:
        self._begin()

    def _begin(self) -> None:
        if not self.text:
            self.typed_under = self._questions.takes_words

    def _walk(self, key: str) -> bool:
        """Go through what was sent before, from the first or the last line; False when the cursor moves instead."""
        if key not in ("up", "down"):
            return False
        self._begin()
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


def joined(*texts: str) -> str:
    """Return texts as one, each on lines of its own; the empty ones are left out."""
    return "\n".join(text for text in texts if text)
