"""The open questions of one chat address, and which of them a message answers."""

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass, replace

from hark.protocol.chat import IncomingMessage
from hark.protocol.events import QuestionAsked
from hark.protocol.meaning import InvalidAnswerMeaning
from hark.text.answers import QUESTION_CLOSED, AnswerResult, find_answer, read_answer

MAX_REMARK_CHARACTERS = 60
QUESTION_KEY = "ask:"  # the prefix of the keys under which questions are sent
LATE_SECONDS = 5.0  # after the end of a turn, in which its users may not have seen yet that a question was closed


@dataclass(frozen=True, slots=True)
class ShownQuestion:
    """A question shown in the chat. `message_id` is the platform's id, "" while the question is being sent."""

    event: QuestionAsked
    message_id: str = ""
    given_answer: str = ""


class OpenQuestions:
    """The open questions of an address, oldest first."""

    def __init__(self) -> None:
        self._open: dict[str, ShownQuestion] = {}
        self._last_closed: ShownQuestion | None = None
        self._turn_ended_at: float | None = None  # the turn of the last closed question
        self._durable_events: dict[str, asyncio.Event] = {}  # by call

    def add(self, event: QuestionAsked) -> None:
        """Add a question, which can be answered even while it is still being sent."""
        self._open[event.question] = ShownQuestion(event)

    def set_message_id(self, question: str, message_id: str) -> None:
        """Set the platform's id of a posted question. Does nothing if the question was closed meanwhile."""
        asked = self._open.get(question)
        if asked is not None:
            self._open[question] = replace(asked, message_id=message_id)

    def record_answer(self, question: str, answer: str, author: str) -> None:
        """Record the first answer given in this chat and its author. They are shown when the question closes."""
        asked = self._open.get(question)
        if asked is not None and not asked.given_answer:
            self._open[question] = replace(asked, given_answer=f"{shorten(answer)}, by {shorten(author)}")

    def close(self, question: str) -> ShownQuestion | None:
        """Remove and return a question. Return None if it is not open."""
        closed = self._open.pop(question, None)
        if closed is not None:
            self.add_closed(closed)
        return closed

    def add_closed(self, closed: ShownQuestion) -> None:
        """Set the question that was closed last. Its choices are late answers until a turn has ended."""
        self._last_closed, self._turn_ended_at = closed, None

    def durable_event(self, question: str) -> asyncio.Event:
        """Return the event that is set when an answer to this question has become durable."""
        return self._durable_events.setdefault(self._open[question].event.call, asyncio.Event())

    def mark_durable(self, call: str | None = None) -> None:
        """Mark the answers to a call as durable. Without `call`, mark the answers to all calls."""
        calls = list(self._durable_events) if call is None else [call]
        for call_id in calls:
            if call_id in self._durable_events:
                self._durable_events.pop(call_id).set()

    def choice_at(self, question: str, position: str) -> str | None:
        """Return the text of the button at a position, or None if the question is not open."""
        choices = self._open[question].event.choices if question in self._open else ()
        return choices[int(position)] if position.isdigit() and int(position) < len(choices) else None

    def end_turn(self) -> None:
        """Record that a turn has ended. The choices of the last closed question become ordinary messages again.

        If the question was not answered in this chat, that happens after `LATE_SECONDS`.
        """
        if self._last_closed is not None and self._last_closed.given_answer:
            self._last_closed = None
        if self._turn_ended_at is None:
            self._turn_ended_at = time.monotonic()

    @property
    def newest(self) -> ShownQuestion | None:
        """The newest open question, or None."""
        return next(reversed(self._open.values()), None)

    @property
    def open_ids(self) -> frozenset[str]:
        """The ids of the open questions."""
        return frozenset(self._open)

    def find_answer(
        self, text: str, message: IncomingMessage, answerable: Collection[str], known: Collection[str] | None = None
    ) -> AnswerResult:
        """Return the answer that a message's text gives to an open question, or None if it is an ordinary message.

        `answerable`: the questions that accept an answer. This chat may show others whose end was not shown yet.
        `known`: the questions that were open when the message was sent, if it was delayed.
        """
        questions = [
            asked for name, asked in self._open.items() if name in answerable and (known is None or name in known)
        ]
        if message.is_answer:
            asked = next((asked for asked in questions if message.replied_to in ("", asked.message_id)), None)
            return read_answer(text, asked.event, is_directed=True) if asked else InvalidAnswerMeaning(QUESTION_CLOSED)
        late = self._find_late_question(answerable)
        return find_answer(text, [asked.event for asked in questions], late, is_private=message.is_private)

    def _find_late_question(self, answerable: Collection[str]) -> QuestionAsked | None:
        """Return the last closed question if its choices are still late answers."""
        ended = next((asked.event for name, asked in self._open.items() if name not in answerable), None)
        is_late = self._turn_ended_at is None or time.monotonic() - self._turn_ended_at < LATE_SECONDS
        return ended or (self._last_closed.event if self._last_closed is not None and is_late else None)


def shorten(text: str) -> str:
    """Return a text on one line, truncated to `MAX_REMARK_CHARACTERS`."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_REMARK_CHARACTERS else line[: MAX_REMARK_CHARACTERS - 1] + "…"
