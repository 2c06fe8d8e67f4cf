"""What a text means, decided once: a slash command, a stop, the answer to an open question, or a message."""

from collections.abc import Callable

from hark.app.slash.table import COMMANDS, QUEUE_CHANGES
from hark.protocol.commands import Delivery
from hark.protocol.meaning import (
    AnswerRule,
    CommandMeaning,
    Meaning,
    MessageMeaning,
    StopMeaning,
    no_answer,
)


def no_stop_word(text: str) -> bool:
    """Take no text for a stop word: the rule of programs, and of surfaces that turned stop words off."""
    return False


def meaning_of(
    text: str, is_stop_word: Callable[[str], bool] = no_stop_word, answer: AnswerRule = no_answer
) -> Meaning:
    """Return what a text means. `answer` is the surface's rule for open questions.

    A path such as /etc/hosts is no command: its name is not in the table.
    """
    found = _command(text)
    if found is not None:
        return found
    if is_stop_word(text):
        return StopMeaning()
    return answer(text) or MessageMeaning(text)


def is_command(text: str) -> bool:
    """Return whether a text is a slash command. It starts no turn by itself."""
    return isinstance(meaning_of(text), CommandMeaning | StopMeaning)


def _command(text: str) -> CommandMeaning | StopMeaning | MessageMeaning | None:
    if not text.startswith("/") or text[1:2].strip() == "":
        return None
    name, *rest = text[1:].split(None, 1)
    name, words = name.lower(), "".join(rest).strip()
    if name not in COMMANDS:
        return None
    if name == "stop":
        return StopMeaning()
    number, _, change = words.partition(" ")
    is_change = number.isdecimal() and change.strip().partition(" ")[0] in QUEUE_CHANGES
    if name == "steer" and words:
        return MessageMeaning(words, Delivery.STEER)
    if name == "queue" and words and not is_change:
        return MessageMeaning(words, Delivery.QUEUE)
    return CommandMeaning(name, words)
