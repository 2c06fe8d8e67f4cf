"""The rule that decides whether a text answers an open question. It is the same on every surface."""

import re
import unicodedata
from collections.abc import Collection, Sequence

from hark.protocol.events import QuestionAsked
from hark.protocol.meaning import AnswerMeaning, InvalidAnswerMeaning

QUESTION_CLOSED = "That question is no longer open."
MAX_DIGITS = 9  # longer numbers are outside every list of choices
_NUMBER = re.compile(r"[+-]?\d+")
_COMMAND_LIKE = re.compile(r"/[\w-]+(\s|$)")

AnswerResult = AnswerMeaning | InvalidAnswerMeaning | None


def find_choice(text: str, choices: Sequence[str]) -> str | None:
    """Return the choice whose whole text, number or letter is `text`, or None.

    Case, Unicode composition, and full stops and exclamation marks at the end are ignored. A choice's letter is its
    first letter, if no other choice starts with the same letter.
    """
    answer, names = _normalize(text), [_normalize(choice) for choice in choices]
    if answer in names:
        return choices[names.index(answer)] if answer else None
    if answer.isdecimal():
        number = int(answer) if len(answer) <= MAX_DIGITS else 0
        return choices[number - 1] if 1 <= number <= len(choices) else None
    letters = [name[:1] for name in names]
    is_letter = len(answer) == 1 and answer.isalpha() and letters.count(answer) == 1
    return choices[letters.index(answer)] if is_letter else None


def read_answer(
    text: str, asked: QuestionAsked, *, is_directed: bool = False, is_private: bool = False
) -> AnswerResult:
    """Return the answer that a text gives to a question, the reason why it is invalid, or None for a message.

    `is_directed`: the text is a reply to the question or was typed into its panel, so that any text answers it.
    `is_private`: only one user can read the chat, so that any text answers a question without choices.
    """
    choices = () if asked.is_open_ended else asked.choices
    choice = find_choice(text, choices) or _find_whole_text(text, asked.choices)
    if choice is not None:
        return AnswerMeaning(asked.question, choice)
    if choices and _NUMBER.fullmatch(_normalize(text)):
        return InvalidAnswerMeaning(f"Choose a number from 1 to {len(choices)}.")
    is_free_text = is_private and not choices and not _COMMAND_LIKE.match(text.strip())
    return AnswerMeaning(asked.question, text.strip()) if text.strip() and (is_directed or is_free_text) else None


def find_answer(
    text: str, questions: Collection[QuestionAsked], closed: QuestionAsked | None = None, *, is_private: bool
) -> AnswerResult:
    """Apply the rule to all open questions, oldest first. A choice is preferred to free text.

    `closed` is the last closed question of the running turn: one of its choices is a late answer, not a message.
    """
    by_choice = [read_answer(text, asked) for asked in questions]
    by_text = [read_answer(text, asked, is_private=is_private) for asked in questions]
    answers = [found for found in (*by_choice, *by_text) if isinstance(found, AnswerMeaning)]
    invalid = [found for found in by_choice if found is not None]
    is_late = closed is not None and isinstance(read_answer(text, closed), AnswerMeaning)
    late = [InvalidAnswerMeaning(QUESTION_CLOSED)] if is_late else []
    return next(iter((*answers, *invalid, *late)), None)


def _find_whole_text(text: str, choices: Sequence[str]) -> str | None:
    return next((choice for choice in choices if _normalize(choice) == _normalize(text)), None)


def _normalize(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().rstrip(".!。！").strip().casefold()
