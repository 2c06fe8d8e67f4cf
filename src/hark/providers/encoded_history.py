"""A conversation in the words of a wire protocol, made once: the next request adds what is new."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from msgspec import Raw

from hark.protocol.messages import Message
from hark.protocol.provider import Request
from hark.providers.request_parts import Late, Wire, encoded

KEPT_BYTES = 4_096


class Fold(Protocol):
    """Takes a conversation's messages, one by one, and never has to take one back."""

    def add(self, message: Message) -> None:
        """Take the next one."""
        ...


F = TypeVar("F", bound=Fold)
M = TypeVar("M", bound=Message)


def folded(request: Request, kind: Callable[[], F]) -> F:
    """Return the fold of the request's messages: that of the conversation's last request goes on, as far as they agree.

    It lies in the request's memo, which belongs to the conversation and ends with it.
    """
    messages = tuple(request.messages)
    before, fold = request.memo.get(kind, ((), None))
    # Messages are values that nobody changes, mostly the same objects as before: comparing them costs next to nothing.
    if fold is None or messages[: len(before)] != before:
        before, fold = (), kind()
    for message in messages[len(before) :]:
        fold.add(message)
    request.memo[kind] = (messages, fold)
    return fold


def kept(make: Callable[[M], Sequence[Wire]], message: M) -> list[Raw | Late]:
    """Return what a message becomes: encoded once and for all where it is short, anew for each body where it is long.

    Long texts and pictures cost memory and hardly any time; it is the many short ones that cost time.
    """
    pieces: list[Raw | Late] = []
    for place, piece in enumerate(make(message)):
        data = encoded(piece)
        pieces.append(Raw(data) if len(data) <= KEPT_BYTES else Late(partial(_nth, make, message, place)))
    return pieces


def _nth(make: Callable[[M], Sequence[Wire]], message: M, place: int) -> Wire:
    return make(message)[place]
