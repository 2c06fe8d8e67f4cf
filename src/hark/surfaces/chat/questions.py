"""The open questions of one chat address, and the rules that decide which messages answer them."""

import asyncio
from dataclasses import dataclass, replace

from hark.protocol.events import QuestionAsked
from hark.protocol.meaning import AnswerMeaning
from hark.protocol.tool import QuestionKind

YES = ("y", "yes", "ok", "okay", "ja", "oui", "sí", "si", "да", "はい", "是", "👍")
MAX_REMARK_CHARACTERS = 60
NO = ("n", "no", "nein", "non", "нет", "いいえ", "不", "👎")


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
        return self._open.pop(question, None)

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

    def find_answer(self, text: str) -> AnswerMeaning | None:
        """Return the question that a text answers, with the answer. Return None if the text is an ordinary message.

        An approval is answered only by one of its choices, so that nothing is approved by accident. Any other
        question accepts free text.
        """
        reply = text.strip().strip("!.。！").casefold()
        if not reply or text.startswith("/"):
            return None
        for asked in self._open.values():
            choice = _match_choice(reply, asked.event.choices)
            if choice is not None:
                return AnswerMeaning(asked.event.question, choice)
            if asked.event.kind is not QuestionKind.APPROVAL:
                return AnswerMeaning(asked.event.question, text)
        return None


def shorten(text: str) -> str:
    """Return a text on one line, truncated to `MAX_REMARK_CHARACTERS`."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_REMARK_CHARACTERS else line[: MAX_REMARK_CHARACTERS - 1] + "…"


def _match_choice(reply: str, choices: tuple[str, ...]) -> str | None:
    for position, choice in enumerate(choices, 1):
        if reply in (choice.casefold(), str(position)):
            return choice
    for meaning in (YES, NO):
        found = next((choice for choice in choices if choice.casefold() in meaning), None)
        if reply in meaning and found is not None:
            return found
    return None
