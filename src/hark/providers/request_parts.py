"""Parts of requests that all wire protocols share."""

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
PICTURE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})  # supported by all vendors
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class LazyPart:
    """A part of a request body that is built only when the body is encoded."""

    __slots__ = ("build",)

    def __init__(self, build: Callable[[], Wire]) -> None:
        self.build = build


def encode_body(body: Wire) -> bytes:
    """Return a request's body as JSON. Unpaired surrogates, which JSON can't contain, are replaced."""
    try:
        return msgspec.json.encode(body, enc_hook=_build_part)
    except UnicodeEncodeError:
        return msgspec.json.encode(_replace_surrogates(body))


def format_message_text(message: UserMessage | CallResult) -> str:
    """Return a message's text, followed by the names of attachments that can't be sent as images."""
    if not message.attachments:
        return message.text
    files = [_describe_attachment(file) for file in message.attachments if not _is_picture(file)]
    return "\n".join([message.text, *files])


def format_text_with_author(message: UserMessage) -> str:
    """Return `format_message_text(message)` prefixed with the author, for protocols without a field for the name."""
    text = format_message_text(message)
    return f"{message.author}: {text}" if message.author else text


def select_pictures(message: UserMessage | CallResult) -> list[Attachment]:
    """Return the attachments that can be sent to a model as images."""
    return [file for file in message.attachments if _is_picture(file)]


def make_data_url(file: Attachment) -> str:
    """Return an image as a data URL."""
    return f"data:{file.media_type};base64,{file.data}"


def make_valid_call_id(call_id: str) -> str:
    """Return the call id, or a deterministic hash of it if it has characters that some vendors reject."""
    if _CALL_ID.fullmatch(call_id):
        return call_id
    return f"call_{blake2s(call_id.encode(errors='surrogatepass'), digest_size=12).hexdigest()}"


def split_reply(
    message: AssistantMessage, is_accepted: Callable[[Reasoning], bool]
) -> Iterator[str | Reasoning | Call]:
    """Yield a reply's texts, accepted reasoning and calls in the order in which the model produced them."""
    text_end = call_count = 0
    for reasoning in filter(is_accepted, message.reasoning):
        if reasoning.behind_characters > text_end:
            yield message.text[text_end : reasoning.behind_characters]
            text_end = reasoning.behind_characters
        yield from message.calls[call_count : reasoning.behind_calls]
        call_count = max(call_count, reasoning.behind_calls)
        yield reasoning
    if message.text[text_end:]:
        yield message.text[text_end:]
    yield from message.calls[call_count:]


def repair_json(payload: bytes) -> bytes:
    """Return JSON with invalid characters replaced, so that a reply with a bad byte need not be requested again.

    Raises:
        ValueError: The payload is not JSON.
    """
    return msgspec.json.encode(_replace_surrogates(json.loads(payload.decode("utf-8", "replace"))))


MAX_CACHED_BYTES = 4_096


class MessageEncoder(Protocol):
    """Encodes the messages of a conversation one by one. Messages are only ever appended."""

    def add(self, message: Message) -> None:
        """Add the next message."""
        ...


F = TypeVar("F", bound=MessageEncoder)


M = TypeVar("M", bound=Message)


def encode_messages(request: Request, create_encoder: Callable[[], F]) -> F:
    """Return an encoder of the request's messages, reusing the previous encoder if they start with its messages.

    The encoder is cached in the request's `memo`, which lives as long as the conversation.
    """
    messages = tuple(request.messages)
    before, encoder = request.memo.get(create_encoder, ((), None))
    # Messages are immutable and mostly the same objects as before, so comparing them is cheap.
    if encoder is None or messages[: len(before)] != before:
        before, encoder = (), create_encoder()
    for message in messages[len(before) :]:
        encoder.add(message)
    request.memo[create_encoder] = (messages, encoder)
    return encoder


def encode_message_parts(encode: Callable[[M], Sequence[Wire]], message: M) -> list[Raw | LazyPart]:
    """Return the encoded parts of a message. Short parts are encoded once, long parts again for each request.

    Caching long texts and images would cost memory and save little time; most of the time is spent on short parts.
    """
    pieces: list[Raw | LazyPart] = []
    for index, piece in enumerate(encode(message)):
        data = encode_body(piece)
        is_short = len(data) <= MAX_CACHED_BYTES
        pieces.append(Raw(data) if is_short else LazyPart(partial(_encode_part, encode, message, index)))
    return pieces


def _encode_part(encode: Callable[[M], Sequence[Wire]], message: M, index: int) -> Wire:
    return encode(message)[index]


def _is_picture(file: Attachment) -> bool:
    return bool(file.data) and file.media_type in PICTURE_TYPES


def _describe_attachment(file: Attachment) -> str:
    location = f" at {file.path}" if file.path else ""
    return f"[attached: {file.name or 'a file'} ({file.media_type}){location}]"


def _build_part(piece: LazyPart) -> Wire:
    return piece.build()


def _replace_surrogates(value: Any) -> Any:
    match value:
        case LazyPart():
            return _replace_surrogates(value.build())
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_replace_surrogates(key): _replace_surrogates(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list() | tuple():
            return [_replace_surrogates(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value
