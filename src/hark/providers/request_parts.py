"""What requests have in common, whatever the wire protocol."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import blake2s
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Raw

from hark.protocol.messages import AssistantMessage, Attachment, Call, CallResult, Message, Reasoning, UserMessage
from hark.protocol.provider import Request

Wire = dict[str, Any]
PICTURE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})  # what all vendors can see
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Late:
    """A piece of a body that is made when the body is encoded."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Wire]) -> None:
        self.make = make


def encoded(body: Wire) -> bytes:
    """Return a request's body. What can't be said in JSON, half a surrogate pair, is replaced."""
    try:
        return msgspec.json.encode(body, enc_hook=_made)
    except UnicodeEncodeError:
        return msgspec.json.encode(_without_surrogates(body))


def text_of(message: UserMessage | CallResult) -> str:
    """Return a person's or a tool's words, with the names of the files that can't be shown."""
    if not message.attachments:
        return message.text
    return "\n".join([message.text, *(_mention(file) for file in message.attachments if not _is_picture(file))])


def signed_text_of(message: UserMessage) -> str:
    """Return `text_of` with its author in front, for protocols that have no place for a name."""
    text = text_of(message)
    return f"{message.author}: {text}" if message.author else text


def pictures_of(message: UserMessage | CallResult) -> list[Attachment]:
    """Return the attachments that a model can be shown."""
    return [file for file in message.attachments if _is_picture(file)]


def data_url(file: Attachment) -> str:
    """Return a picture as a URL that holds it."""
    return f"data:{file.media_type};base64,{file.data}"


def call_id(name: str) -> str:
    """Return a call's id in letters that every vendor takes, the same for the same: another server may have made it."""
    if _CALL_ID.fullmatch(name):
        return name
    return f"call_{blake2s(name.encode(errors='surrogatepass'), digest_size=12).hexdigest()}"


def in_order(message: AssistantMessage, is_ours: Callable[[Reasoning], bool]) -> Iterator[str | Reasoning | Call]:
    """Yield a reply's pieces as the model said them: text, those thoughts that this API made, and calls."""
    said = called = 0
    for thought in filter(is_ours, message.reasoning):
        if thought.behind_characters > said:
            yield message.text[said : thought.behind_characters]
            said = thought.behind_characters
        yield from message.calls[called : thought.behind_calls]
        called = max(called, thought.behind_calls)
        yield thought
    if message.text[said:]:
        yield message.text[said:]
    yield from message.calls[called:]


def repaired(payload: bytes) -> bytes:
    """Return JSON with its broken characters replaced: a bad byte in a reply is no reason to ask for it again.

    Raises:
        ValueError: It is no JSON at all.
    """
    return msgspec.json.encode(_without_surrogates(json.loads(payload.decode("utf-8", "replace"))))


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


def _is_picture(file: Attachment) -> bool:
    return bool(file.data) and file.media_type in PICTURE_TYPES


def _mention(file: Attachment) -> str:
    place = f" at {file.path}" if file.path else ""
    return f"[attached: {file.name or 'a file'} ({file.media_type}){place}]"


def _made(piece: Late) -> Wire:
    return piece.make()


def _without_surrogates(value: Any) -> Any:
    match value:
        case Late():
            return _without_surrogates(value.make())
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list() | tuple():
            return [_without_surrogates(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value
