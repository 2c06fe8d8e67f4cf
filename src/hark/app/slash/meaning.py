"""Interprets user input as a slash command, a stop, the answer to an open question, or a message."""

from collections.abc import Callable

from hark.app.slash.command_table import COMMANDS, QUEUE_CHANGES
from hark.protocol.commands import Delivery
from hark.protocol.meaning import (
    AnswerRule,
    CommandMeaning,
    Meaning,
    MessageMeaning,
    StopMeaning,
    not_an_answer,
)


def never_a_stop_word(text: str) -> bool:
    """Always return False. Used for programs, and for surfaces without stop words."""
    return False


def meaning_of(
    text: str, is_stop_word: Callable[[str], bool] = never_a_stop_word, answer: AnswerRule = not_an_answer
) -> Meaning:
    """Interpret user input. `answer` is the surface's rule for answers to open questions.

    A path such as /etc/hosts is not a command, since no command has that name.
    """
    found = _parse_command(text)
    if found is not None:
        return found
    if is_stop_word(text):
        return StopMeaning()
    return answer(text) or MessageMeaning(text)


def is_command(text: str) -> bool:
    """Return whether a text is a slash command, which starts no turn."""
    return isinstance(meaning_of(text), CommandMeaning | StopMeaning)


def _parse_command(text: str) -> CommandMeaning | StopMeaning | MessageMeaning | None:
    if not text.startswith("/") or text[1:2].strip() == "":
        return None
    name, *rest = text[1:].split(None, 1)
    name, arguments = name.lower(), "".join(rest).strip()
    if name not in COMMANDS:
        return None
    if name == "stop" and arguments.lower() != "all":
        return StopMeaning()
    number, _, change = arguments.partition(" ")
    is_change = number.isdecimal() and change.strip().partition(" ")[0] in QUEUE_CHANGES
    if name == "steer" and arguments:
        return MessageMeaning(arguments, Delivery.STEER)
    if name == "queue" and arguments and not is_change:
        return MessageMeaning(arguments, Delivery.QUEUE)
    return CommandMeaning(name, arguments)
