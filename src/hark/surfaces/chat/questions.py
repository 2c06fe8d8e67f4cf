"""The questions that are open at one address, and which message may be meant as an answer."""

import asyncio
from dataclasses import dataclass, replace

from hark.protocol.events import QuestionAsked
from hark.protocol.meaning import AnswerMeaning
from hark.protocol.tool import QuestionKind

YES = ("y", "yes", "ok", "okay", "ja", "oui", "sí", "si", "да", "はい", "是", "👍")
GIVEN_CHARACTERS = 60
NO = ("n", "no", "nein", "non", "нет", "いいえ", "不", "👎")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it was shown: the platform's id of it is "" while it is being sent."""

    event: QuestionAsked
    posted: str = ""
    given: str = ""


class OpenQuestions:
    """What is asked at present, the oldest first."""

    def __init__(self) -> None:
        self._asked: dict[str, Asked] = {}
        self._settling: dict[str, asyncio.Event] = {}  # by call

    def open(self, event: QuestionAsked) -> None:
        """Note a question; it may be answered while it is still being sent."""
        self._asked[event.question] = Asked(event)

    def posted(self, question: str, message: str) -> None:
        """It is shown under this id of the platform; without effect when it was closed meanwhile."""
        asked = self._asked.get(question)
        if asked is not None:
            self._asked[question] = replace(asked, posted=message)

    def answered(self, question: str, answer: str, by: str) -> None:
        """Somebody here gave an answer, the first that counts; it is shown when the question closes."""
        asked = self._asked.get(question)
        if asked is not None and not asked.given:
            self._asked[question] = replace(asked, given=f"{shortened(answer)}, by {shortened(by)}")

    def close(self, question: str) -> Asked | None:
        """Forget a question; return how it was shown."""
        return self._asked.pop(question, None)

    def settling(self, question: str) -> asyncio.Event:
        """Return what is set when an answer to this question has become durable, with what asked for it."""
        return self._settling.setdefault(self._asked[question].event.call, asyncio.Event())

    def settle(self, call: str | None = None) -> None:
        """What a call was told is durable; None: so is what any call was told."""
        calls = list(self._settling) if call is None else [call]
        for one in calls:
            if one in self._settling:
                self._settling.pop(one).set()

    def choice(self, question: str, place: str) -> str | None:
        """Return what the button at that place says; None when there is no such question any more."""
        choices = self._asked[question].event.choices if question in self._asked else ()
        return choices[int(place)] if place.isdigit() and int(place) < len(choices) else None

    def answer_in(self, text: str) -> AnswerMeaning | None:
        """Return the question that a message answers, and its answer; None when it is a message like any other.

        An approval is answered by one of its choices alone: nobody allows something by chance. Any other question is
        answered by words.
        """
        words = text.strip().strip("!.。！").casefold()
        if not words or text.startswith("/"):
            return None
        for asked in self._asked.values():
            choice = _choice(words, asked.event.choices)
            if choice is not None:
                return AnswerMeaning(asked.event.question, choice)
            if asked.event.kind is not QuestionKind.APPROVAL:
                return AnswerMeaning(asked.event.question, text)
        return None


def shortened(text: str) -> str:
    """Return a text on one line, and not too long for a remark."""
    line = " ".join(text.split())
    return line if len(line) <= GIVEN_CHARACTERS else line[: GIVEN_CHARACTERS - 1] + "…"


def _choice(words: str, choices: tuple[str, ...]) -> str | None:
    for place, choice in enumerate(choices, 1):
        if words in (choice.casefold(), str(place)):
            return choice
    for meaning in (YES, NO):
        found = next((choice for choice in choices if choice.casefold() in meaning), None)
        if words in meaning and found is not None:
            return found
    return None
