"""What a typed or spoken text means: a closed union, decided once for every surface."""

from collections.abc import Callable

from msgspec import Struct

from hark.protocol.commands import Delivery

NO_TURN = "No turn is running."  # the reply to a stop with nothing to stop


class CommandMeaning(Struct, frozen=True):
    """A slash command: its name, and the words behind it."""

    name: str
    words: str


class StopMeaning(Struct, frozen=True):
    """A request to stop: `/stop`, or a stop word."""


class AnswerMeaning(Struct, frozen=True):
    """The answer to an open question."""

    question: str
    text: str


class MessageMeaning(Struct, frozen=True):
    """A message. `delivery` is the one that `/steer TEXT` or `/queue TEXT` asks for; None without such a prefix."""

    text: str
    delivery: Delivery | None = None


Meaning = CommandMeaning | StopMeaning | AnswerMeaning | MessageMeaning
AnswerRule = Callable[[str], AnswerMeaning | None]


def no_answer(text: str) -> AnswerMeaning | None:
    """Take no text for an answer: the rule of surfaces that send answers in another way."""
    return None
