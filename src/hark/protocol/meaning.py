"""The meanings that a typed or spoken text can have, the same for every surface."""

from collections.abc import Callable

from msgspec import Struct

from hark.protocol.commands import Delivery

NO_TURN = "No turn is running."  # the reply to a stop when no turn is running


class CommandMeaning(Struct, frozen=True):
    """A slash command: its name, and the text after the name."""

    name: str
    arguments: str


class StopMeaning(Struct, frozen=True):
    """A request to stop: `/stop`, or a stop word."""


class AnswerMeaning(Struct, frozen=True):
    """The answer to an open question."""

    question: str
    text: str


class InvalidAnswerMeaning(Struct, frozen=True):
    """An attempt to answer that can't be used, such as a number outside the choices: neither an answer nor a message.

    `reason` is shown to the user.
    """

    reason: str


class MessageMeaning(Struct, frozen=True):
    """An ordinary message. The prefix `/steer` or `/queue` sets `delivery`, which is otherwise None."""

    text: str
    delivery: Delivery | None = None


Meaning = CommandMeaning | StopMeaning | AnswerMeaning | InvalidAnswerMeaning | MessageMeaning
AnswerRule = Callable[[str], AnswerMeaning | InvalidAnswerMeaning | None]


def not_an_answer(text: str) -> None:
    """Return None, so that no text counts as an answer. The default for surfaces that send answers by other means."""
