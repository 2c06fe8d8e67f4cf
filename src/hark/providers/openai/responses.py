"""Requests in OpenAI's Responses protocol, which its newer models use."""

from collections.abc import Iterator

import aiohttp
import msgspec
from msgspec import Raw, Struct

from hark.protocol.messages import AssistantMessage, Attachment, Call, CallResult, Message, Note, Reasoning, UserMessage
from hark.protocol.provider import Request
from hark.protocol.tool import ToolSpec
from hark.providers.endpoint import Endpoint
from hark.providers.http_provider import HttpProvider, bearer_headers
from hark.providers.openai.responses_reply import ResponsesDecoder
from hark.providers.request_parts import (
    LazyPart,
    Wire,
    encode_body,
    encode_message_parts,
    encode_messages,
    format_message_text,
    format_text_with_author,
    make_data_url,
    make_valid_call_id,
    select_pictures,
    split_reply,
)

# These models can't reason, and reject a request that asks for reasoning.
_MODELS_WITHOUT_REASONING = ("gpt-3", "gpt-4", "chatgpt-4")


class _StoredReasoning(Struct):
    """The fields that identify a reasoning item created by this API."""

    type: str
    id: str
    encrypted_content: str


def encode_request(request: Request, endpoint: Endpoint) -> bytes:
    """Return the request body, which asks the server not to store anything."""
    items = encode_messages(request, _RequestItems)
    body: Wire = {"model": endpoint.model, "input": items.all, "store": False, "stream": endpoint.stream}
    if not endpoint.model.rpartition("/")[2].startswith(_MODELS_WITHOUT_REASONING):
        body["include"] = ["reasoning.encrypted_content"]
    if request.system:
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [_encode_tool(spec) for spec in request.tools]
        if not request.may_call:
            body["tool_choice"] = "none"
    if request.max_tokens is not None:
        body["max_output_tokens"] = request.max_tokens
    return encode_body(body)


class _RequestItems:
    """The encoded input items in order."""

    def __init__(self) -> None:
        self.all: list[Raw | LazyPart] = []

    def add(self, message: Message) -> None:
        """Add the next message."""
        self.all += encode_message_parts(_encode_items, message)


def _encode_items(message: Message) -> list[Wire]:
    match message:
        case UserMessage():
            return [_encode_user(message)]
        case Note(text):
            return [{"type": "message", "role": "user", "content": text}]
        case AssistantMessage():
            return list(_encode_reply(message))
        case CallResult():
            call_id = make_valid_call_id(message.call)
            return [{"type": "function_call_output", "call_id": call_id, "output": _encode_output(message)}]


def _encode_user(message: UserMessage) -> Wire:
    return {"type": "message", "role": "user", "content": _encode_content(format_text_with_author(message), message)}


def _encode_output(result: CallResult) -> str | list[Wire]:
    return _encode_content(format_message_text(result), result)


def _encode_content(text: str, message: UserMessage | CallResult) -> str | list[Wire]:
    pictures = [_encode_picture(file) for file in select_pictures(message)]
    text_parts: list[Wire] = [{"type": "input_text", "text": text}] if text else []
    return [*text_parts, *pictures] if pictures else text


def _encode_picture(file: Attachment) -> Wire:
    return {"type": "input_image", "image_url": make_data_url(file), "detail": "auto"}


def _encode_reply(message: AssistantMessage) -> Iterator[Wire]:
    if not message.text and not message.calls:
        return  # reasoning without a following text or call is rejected
    for piece in split_reply(message, _is_accepted_reasoning):
        match piece:
            case str():
                yield {"type": "message", "role": "assistant", "content": piece}
            case Reasoning():
                yield msgspec.json.decode(piece.data)
            case Call():
                yield _encode_call(piece)


def _is_accepted_reasoning(reasoning: Reasoning) -> bool:
    try:
        return msgspec.json.decode(reasoning.data, type=_StoredReasoning).type == "reasoning"
    except msgspec.DecodeError:
        return False


def _encode_call(call: Call) -> Wire:
    call_id = make_valid_call_id(call.id)
    return {"type": "function_call", "call_id": call_id, "name": call.name, "arguments": call.arguments}


def _encode_tool(spec: ToolSpec) -> Wire:
    """Return a tool's definition. Strict mode, the default, is off because it supports only part of JSON Schema."""
    tool = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", **tool, "strict": False}


class OpenAIResponses(HttpProvider):
    """A provider for a Responses API, without storage on the server. `session` comes from `open_session`."""

    def __init__(self, session: aiohttp.ClientSession, endpoint: Endpoint) -> None:
        super().__init__(session, endpoint, "/responses", bearer_headers(endpoint), encode_request, ResponsesDecoder)
