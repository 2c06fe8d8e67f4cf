"""The wire protocol of OpenAI's own newer models: responses."""

from collections.abc import Iterator

import aiohttp
import msgspec
from msgspec import Raw, Struct

from hark.protocol.messages import AssistantMessage, Attachment, Call, CallResult, Message, Note, Reasoning, UserMessage
from hark.protocol.provider import Request
from hark.protocol.tool import ToolSpec
from hark.providers.endpoint import Endpoint
from hark.providers.http_provider import HttpProvider, bearer
from hark.providers.openai.responses_reply import ResponsesDialect
from hark.providers.request_parts import (
    Late,
    Wire,
    call_id,
    data_url,
    encoded,
    folded,
    in_order,
    kept,
    pictures_of,
    signed_text_of,
    text_of,
)

# These can't reason, and refuse to be asked for it.
_UNREASONING = ("gpt-3", "gpt-4", "chatgpt-4")


class _Kept(Struct):
    """What tells a reasoning item that this API made."""

    type: str
    id: str
    encrypted_content: str


def encode_request(request: Request, endpoint: Endpoint) -> bytes:
    """Return the body of a request that leaves nothing with the server."""
    items = folded(request, _Items)
    body: Wire = {"model": endpoint.model, "input": items.all, "store": False, "stream": endpoint.stream}
    if not endpoint.model.rpartition("/")[2].startswith(_UNREASONING):
        body["include"] = ["reasoning.encrypted_content"]
    if request.system:
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    if request.max_tokens is not None:
        body["max_output_tokens"] = request.max_tokens
    return encoded(body)


class _Items:
    """The items in their order."""

    def __init__(self) -> None:
        self.all: list[Raw | Late] = []

    def add(self, message: Message) -> None:
        """Take the next message."""
        self.all += kept(_items, message)


def _items(message: Message) -> list[Wire]:
    match message:
        case UserMessage():
            return [_user(message)]
        case Note(text):
            return [{"type": "message", "role": "user", "content": text}]
        case AssistantMessage():
            return list(_reply(message))
        case CallResult():
            return [{"type": "function_call_output", "call_id": call_id(message.call), "output": _output(message)}]


def _user(message: UserMessage) -> Wire:
    return {"type": "message", "role": "user", "content": _with_pictures(signed_text_of(message), message)}


def _output(result: CallResult) -> str | list[Wire]:
    return _with_pictures(text_of(result), result)


def _with_pictures(text: str, message: UserMessage | CallResult) -> str | list[Wire]:
    pictures = [_picture(file) for file in pictures_of(message)]
    words: list[Wire] = [{"type": "input_text", "text": text}] if text else []
    return [*words, *pictures] if pictures else text


def _picture(file: Attachment) -> Wire:
    return {"type": "input_image", "image_url": data_url(file), "detail": "auto"}


def _reply(message: AssistantMessage) -> Iterator[Wire]:
    if not message.text and not message.calls:
        return  # reasoning alone is refused: it must stand before what it led to
    for piece in in_order(message, _is_ours):
        match piece:
            case str():
                yield {"type": "message", "role": "assistant", "content": piece}
            case Reasoning():
                yield msgspec.json.decode(piece.data)
            case Call():
                yield _call(piece)


def _is_ours(thought: Reasoning) -> bool:
    try:
        return msgspec.json.decode(thought.data, type=_Kept).type == "reasoning"
    except msgspec.DecodeError:
        return False


def _call(call: Call) -> Wire:
    return {"type": "function_call", "call_id": call_id(call.id), "name": call.name, "arguments": call.arguments}


def _tool(spec: ToolSpec) -> Wire:
    """Return a tool. Not strict, which would be the default: that takes only a part of JSON Schema."""
    tool = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", **tool, "strict": False}


class OpenAIResponses(HttpProvider):
    """A model behind a responses API that keeps nothing, over a session from `open_session`."""

    def __init__(self, session: aiohttp.ClientSession, endpoint: Endpoint) -> None:
        super().__init__(session, endpoint, "/responses", bearer(endpoint), encode_request, ResponsesDialect)
