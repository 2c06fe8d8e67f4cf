"""The input line. It is always usable, and typed text is never lost."""

from collections.abc import Callable
from typing import ClassVar

from msgspec.structs import asdict
from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import TextArea

from hark.protocol.receipts import QueueItem
from hark.surfaces.terminal.history import History
from hark.surfaces.terminal.keys import FIXED_KEYS, Keys
from hark.surfaces.terminal.widgets.question_panel import QuestionPanel

_COMPLETION_KEYS = {"up": "choice_up", "down": "choice_down", "tab": "complete", "enter": "complete"}


class Composer(TextArea):
    """A multi-line text input. It reports the user's actions but doesn't execute them.

    `on_action` receives a key's action (send, queue, steer, ...) and the time of the press. It is called
    synchronously, before the next key is handled.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+u", "delete_to_start_of_line", show=False)]

    def __init__(
        self,
        keys: Keys,
        history: History,
        questions: QuestionPanel,
        on_action: Callable[[str, float], None],
    ) -> None:
        super().__init__(id="composer", soft_wrap=True, compact=True, highlight_cursor_line=False)
        self.cursor_blink = False
        self.sent_history = history
        self.has_completions = False  # a completion list is shown
        self.typed_for_question = ""  # the question that was on the screen when the user began to type
        self.edited_item: QueueItem | None = None  # the queued message that is being edited in the line
        self.stashed_text = ""  # the text that was in the line before the edit
        self._questions = questions
        self._send_action = on_action
        self._newline_key = keys.newline
        self._key_actions = {key: act for act, key in asdict(keys).items() if act != "newline"} | FIXED_KEYS

    def set_text(self, text: str) -> None:
        """Show this text with the cursor at its end."""
        self.text = text
        self.move_cursor(self.document.end)

    def pop_text(self) -> str:
        """Return the typed text, clear the input line, and add the text to the history."""
        text = self.text.strip("\n").rstrip()
        if text.strip():
            self.sent_history.add(text)
        self.set_text("")
        return text if text.strip() else ""

    def begin_edit(self, item: QueueItem) -> None:
        """Show a queued message in the input line until `end_edit` is called."""
        if self.edited_item is None:
            self.stashed_text = self.text
        self.edited_item = item
        self.set_text(item.text)
        self.focus()

    def end_edit(self) -> QueueItem | None:
        """Restore the text from before the edit and return the edited message."""
        item, self.edited_item = self.edited_item, None
        if item is not None and self.text != item.text:
            self.pop_text()  # Up restores the edited text, even if it can't be saved
        self.set_text(self.stashed_text)
        self.stashed_text = ""
        return item

    def text_before_cursor(self) -> str:
        """Return the text of the cursor's line before the cursor."""
        row, column = self.cursor_location
        return self.document.get_line(row)[:column]

    async def _on_key(self, event: events.Key) -> None:
        action = self._action_for_key(event)
        if action:
            self._send_action(action, event.time)
        elif event.key in (self._newline_key, "shift+enter", "alt+enter"):
            self.insert("\n")
        elif event.key == "enter":  # after a backslash
            row, column = self.cursor_location
            self.replace("\n", (row, column - 1), (row, column))
        elif not (self._walk_history(event.key) or await self._run_binding(event.key)):
            self._remember_question()
            return  # Textual calls the text area's own handler next
        event.prevent_default()
        event.stop()

    async def _run_binding(self, key: str) -> bool:
        """Run a key's binding immediately. Textual would run it only after handling the characters typed after it."""
        bindings = self._bindings.key_to_bindings.get(key, [])
        for binding in bindings[:1]:
            await self.run_action(binding.action)
        return bool(bindings)

    def _action_for_key(self, event: events.Key) -> str:
        """Return the action for a key, or "" if the input line itself handles the key."""
        if self.has_completions and event.key in _COMPLETION_KEYS:
            return _COMPLETION_KEYS[event.key]
        if event.key == "enter":
            return "" if self.text_before_cursor().endswith("\\") else "send"
        action = self._key_actions.get(event.key, "")
        if action == "end" and self.text:
            return ""  # Ctrl+D deletes to the right while the line has text
        return action

    async def _on_paste(self, event: events.Paste) -> None:
        self._remember_question()

    def _remember_question(self) -> None:
        if not self.text:
            self.typed_for_question = self._questions.readable_question

    def _walk_history(self, key: str) -> bool:
        """Show the adjacent history entry on Up in the first or Down in the last line. Return whether one was shown."""
        if key not in ("up", "down"):
            return False
        self._remember_question()
        row, _ = self.cursor_location
        if key == "up" and row == 0:
            text = self.sent_history.older(self.text)
        elif key == "down" and row == self.document.line_count - 1:
            text = self.sent_history.newer()
        else:
            return False
        if text is not None:
            self.set_text(text)
        return text is not None


def join_texts(*texts: str) -> str:
    """Return the non-empty texts joined by line breaks."""
    return "\n".join(text for text in texts if text)
