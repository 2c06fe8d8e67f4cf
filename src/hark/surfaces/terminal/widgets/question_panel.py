"""The panel with the open question. The user answers it in the input line; nothing is answered without Enter."""

import time

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from hark.protocol.events import QuestionAsked
from hark.protocol.meaning import InvalidAnswerMeaning
from hark.protocol.tool import QuestionKind
from hark.text.answers import QUESTION_CLOSED, AnswerResult, read_answer
from hark.text.graphemes import shorten
from hark.text.safe_text import sanitize_text

# Text typed before the user could read the question must not answer it.
MIN_READ_SECONDS = 0.5
_MAX_TEXT_CHARACTERS = 4_000


class QuestionPanel(Vertical):
    """Shows the oldest open question above the input line."""

    def __init__(self) -> None:
        super().__init__(id="question")
        self._open: dict[str, QuestionAsked] = {}
        self._last_closed: QuestionAsked | None = None
        self._is_turn_over = False  # the turn of the last closed question
        self._focused = ""  # the question that any typed text answers
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
    def readable_question(self) -> str:
        """The id of the displayed question if it was visible long enough to be read, else ""."""
        asked = self.current
        is_readable = self._is_focused or time.monotonic() - self._shown_at >= MIN_READ_SECONDS
        return asked.question if asked and is_readable else ""

    @property
    def _is_focused(self) -> bool:
        return self.current is not None and self.current.question == self._focused

    def find_answer(self, text: str, typed_for: str) -> AnswerResult:
        """Return the answer that a text gives. `typed_for` is the question that was displayed when typing began.

        A choice that was typed before the question could be read must be confirmed, and a choice of the question
        that was closed last is too late.
        """
        asked = self._open.get(typed_for)
        if asked is not None:
            return read_answer(text, asked, is_directed=typed_for == self._focused, is_private=True)
        closed = self._last_closed
        is_typed_for_it = closed is not None and closed.question == typed_for
        is_meant = closed is not None and (is_typed_for_it or not self._is_turn_over)
        if (closed and is_meant and read_answer(text, closed, is_private=is_typed_for_it)) or (
            typed_for and typed_for == self._focused
        ):
            self._last_closed, self._focused = None, ""
            return InvalidAnswerMeaning(f"{QUESTION_CLOSED} Press Enter again to send your text as a message.")
        if self.current is not None and read_answer(text, self.current) is not None:
            return InvalidAnswerMeaning("A question appeared while you were typing. Press Enter again to answer it.")
        return None

    def toggle_focus(self) -> None:
        """Make any text the answer to the displayed question, or undo that."""
        self._focused = self.current.question if self.current and not self._is_focused else ""
        self._draw()

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
            self._last_closed, self._is_turn_over = asked, False
            if self.current is not before:
                self._shown_at = time.monotonic()
            self._draw()
        return asked

    def close_all(self) -> None:
        """Remove all questions because their turn has ended."""
        self._is_turn_over = True
        if self._open:
            self._open.clear()
            self._draw()

    def close_turn(self) -> None:
        """Remove the questions of a turn that has ended. Questions from children that continue stay open."""
        for question in [name for name, asked in self._open.items() if asked.turn is not None]:
            self.close_question(question)
        self._is_turn_over = True

    def _draw(self) -> None:
        asked = self.current
        self.display = asked is not None
        if asked is None:
            return
        more = f"  (1 of {len(self._open)})" if len(self._open) > 1 else ""
        self._text.update(f"? {shorten(sanitize_text(asked.text), _MAX_TEXT_CHARACTERS)}{more}")
        is_free = not asked.choices or asked.is_open_ended
        choices = [text if asked.is_open_ended else f"[{name}] {text}" for name, text in _named_choices(asked)]
        hint = "type an answer, then Enter" if is_free or self._is_focused else "type one, then Enter"
        focus = "" if is_free else "Shift+Tab: choose" if self._is_focused else "Shift+Tab: other answer"
        hints = "   ".join(filter(None, [hint, focus, "Esc stops the turn"]))
        self._choices.update("\n".join(filter(None, ["   ".join(choices), hints])))


def _named_choices(asked: QuestionAsked) -> list[tuple[str, str]]:
    """Return each choice with the letter (approvals) or number (other questions) that selects it."""
    is_approval = asked.kind is QuestionKind.APPROVAL
    texts = [sanitize_text(choice) for choice in asked.choices]
    return [(text[:1] if is_approval else str(number), text) for number, text in enumerate(texts, 1)]
