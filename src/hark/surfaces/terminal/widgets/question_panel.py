"""The panel with the open question. The user answers with a key or with text."""

import time

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from hark.protocol.events import QuestionAsked
from hark.protocol.tool import QuestionKind
from hark.text.graphemes import shorten
from hark.text.safe_text import sanitize_text

# A key pressed before the user could read the question must not answer it.
MIN_READ_SECONDS = 0.5
_MAX_TEXT_CHARACTERS = 4_000


class QuestionPanel(Vertical):
    """Shows the oldest open question above the input line."""

    def __init__(self) -> None:
        super().__init__(id="question")
        self._open: dict[str, QuestionAsked] = {}
        self._shown_at = 0.0
        self._text = Static("", markup=False, classes="text")
        self._choices = Static("", markup=False, classes="choices")
        self.display = False

    def compose(self) -> ComposeResult:
        """Yield the question and the choices below it."""
        yield self._text
        yield self._choices

    @property
    def current(self) -> QuestionAsked | None:
        """The displayed question, or None."""
        return next(iter(self._open.values()), None)

    @property
    def free_text_question(self) -> str:
        """The id of the displayed question if it accepts text and was visible long enough to be read, else ""."""
        asked = self.current
        return asked.question if asked and asked.kind is QuestionKind.QUESTION and self._is_readable else ""

    def is_open(self, question: str) -> bool:
        """Return whether a question is still open."""
        return question in self._open

    @property
    def _is_readable(self) -> bool:
        return time.monotonic() - self._shown_at >= MIN_READ_SECONDS

    def add_question(self, asked: QuestionAsked) -> None:
        """Add a question, which is shown once all older questions have been closed."""
        self._open[asked.question] = asked
        if len(self._open) == 1:
            self._shown_at = time.monotonic()
        self._draw()

    def close_question(self, question: str) -> QuestionAsked | None:
        """Remove a question from the panel. Return the question if it was open, else None."""
        before = self.current
        asked = self._open.pop(question, None)
        if asked is not None:
            if self.current is not before:
                self._shown_at = time.monotonic()
            self._draw()
        return asked

    def close_all(self) -> None:
        """Remove all questions because their turn has ended."""
        if self._open:
            self._open.clear()
            self._draw()

    def choice_for_key(self, key: str) -> str | None:
        """Return the choice that a key selects. Return None for other keys and while the question is too new."""
        asked = self.current
        if asked is None or not self._is_readable:
            return None
        if key.isdigit():
            index = int(key) - 1
            return asked.choices[index] if 0 <= index < len(asked.choices) else None
        if asked.kind is not QuestionKind.APPROVAL:
            return None
        return next((choice for choice in asked.choices if choice.startswith(key.lower())), None)

    def _draw(self) -> None:
        asked = self.current
        self.display = asked is not None
        if asked is None:
            return
        more = f"  (1 of {len(self._open)})" if len(self._open) > 1 else ""
        self._text.update(f"? {shorten(sanitize_text(asked.text), _MAX_TEXT_CHARACTERS)}{more}")
        is_approval = asked.kind is QuestionKind.APPROVAL
        choices = [
            _format_choice(number, sanitize_text(text), is_approval) for number, text in enumerate(asked.choices, 1)
        ]
        hint = "press a key" if is_approval else "type an answer, then Enter"
        self._choices.update("   ".join([*choices, hint, "Esc stops the turn"]))


def _format_choice(number: int, choice: str, is_approval: bool) -> str:
    return f"[{choice[:1]}] {choice}" if is_approval else f"[{number}] {choice}"
