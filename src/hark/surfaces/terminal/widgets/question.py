"""The question on the screen: answered by a key, or by words where words will do."""

import time

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from hark.protocol.events import QuestionAsked
from hark.protocol.tool import QuestionKind
from hark.text.safe_text import safe

# A key that was on its way before the question could be read is no answer to it.
READ_SECONDS = 0.5
_TEXT_CHARACTERS = 4_000


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
        """Show the question, and below it the answers to choose from."""
        yield self._text
        yield self._choices

    @property
    def current(self) -> QuestionAsked | None:
        """The question on the screen."""
        return next(iter(self._open.values()), None)

    @property
    def takes_words(self) -> str:
        """The question on the screen, if it may be answered with words of one's own and could be read; else ""."""
        asked = self.current
        return asked.question if asked and asked.kind is QuestionKind.QUESTION and self._is_read else ""

    def is_open(self, question: str) -> bool:
        """Tell whether a question still waits for an answer."""
        return question in self._open

    @property
    def _is_read(self) -> bool:
        return time.monotonic() - self._shown_at >= READ_SECONDS

    def ask(self, asked: QuestionAsked) -> None:
        """Show one more question."""
        self._open[asked.question] = asked
        if len(self._open) == 1:
            self._shown_at = time.monotonic()
        self._draw()

    def close(self, question: str) -> QuestionAsked | None:
        """Take a question off the screen; return it if it was open."""
        before = self.current
        asked = self._open.pop(question, None)
        if asked is not None:
            if self.current is not before:
                self._shown_at = time.monotonic()
            self._draw()
        return asked

    def close_all(self) -> None:
        """Take all off the screen: their turn is over."""
        if self._open:
            self._open.clear()
            self._draw()

    def choice(self, key: str) -> str | None:
        """Return the answer that a single key stands for; None when it is none, or came too early to be one."""
        asked = self.current
        if asked is None or not self._is_read:
            return None
        if key.isdigit():
            place = int(key) - 1
            return asked.choices[place] if 0 <= place < len(asked.choices) else None
        if asked.kind is not QuestionKind.APPROVAL:
            return None
        return next((choice for choice in asked.choices if choice.startswith(key.lower())), None)

    def _draw(self) -> None:
        asked = self.current
        self.display = asked is not None
        if asked is None:
            return
        more = f"  ({len(self._open) - 1} more behind it)" if len(self._open) > 1 else ""
        self._text.update(f"? {safe(asked.text)[:_TEXT_CHARACTERS]}{more}")
        is_approval = asked.kind is QuestionKind.APPROVAL
        choices = "   ".join(_choice(place, safe(choice), is_approval) for place, choice in enumerate(asked.choices, 1))
        how = "a key answers" if is_approval else "type an answer and Enter"
        self._choices.update("   ".join(part for part in (choices, how, "Esc stops the turn") if part))


def _choice(place: int, choice: str, is_approval: bool) -> str:
    return f"[{choice[:1]}] {choice}" if is_approval else f"[{place}] {choice}"
