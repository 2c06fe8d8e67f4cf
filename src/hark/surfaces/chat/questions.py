"""The open questions of one chat address, and which of them a message answers."""

import asyncio
from dataclasses import dataclass, replace

from hark.protocol.chat import IncomingMessage
from hark.protocol.events import QuestionAsked
from hark.protocol.meaning import InvalidAnswerMeaning
from hark.text.answers import QUESTION_CLOSED, AnswerResult, find_answer, read_answer

MAX_REMARK_CHARACTERS = 60
QUESTION_KEY = "ask:"  # the prefix of the keys under which questions are sent


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
        self._last_closed: QuestionAsked | None = None  # in the running turn
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
            self._last_closed = closed.event
        return closed

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
        """Forget the last closed question, because its turn has ended. Its choices are ordinary messages again."""
        self._last_closed = None

    def find_answer(self, text: str, message: IncomingMessage) -> AnswerResult:
        """Return the answer that a message's text gives to an open question, or None if it is an ordinary message."""
        if message.is_answer:
            asked = next((one for one in self._open.values() if message.replied_to in ("", one.message_id)), None)
            return read_answer(text, asked.event, is_directed=True) if asked else InvalidAnswerMeaning(QUESTION_CLOSED)
        questions = [asked.event for asked in self._open.values()]
        return find_answer(text, questions, self._last_closed, is_private=message.is_private)


def shorten(text: str) -> str:
    """Return a text on one line, truncated to `MAX_REMARK_CHARACTERS`."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_REMARK_CHARACTERS else line[: MAX_REMARK_CHARACTERS - 1] + "…"
