"""Requests in OpenAI's Chat Completions protocol, which most model servers support."""

import re
from collections.abc import Sequence
from functools import partial

import aiohttp
from msgspec import Raw

from hark.protocol.messages import AssistantMessage, Attachment, Call, CallResult, Message, Note, UserMessage
from hark.protocol.provider import Request
from hark.protocol.tool import ToolSpec
from hark.providers.endpoint import Endpoint
from hark.providers.http_provider import HttpProvider, bearer_headers
from hark.providers.openai.chat_reply import ChatDecoder
from hark.providers.request_parts import (
    LazyPart,
    Wire,
    encode_body,
    encode_message_parts,
    encode_messages,
    format_message_text,
    make_data_url,
    select_pictures,
)

_INVALID_NAME_CHARACTERS = re.compile(r"[^a-zA-Z0-9_-]")
MAX_NAME_CHARACTERS = 64


def encode_request(request: Request, endpoint: Endpoint) -> bytes:
    """Return the request body."""
    body: Wire = {"model": endpoint.model, "messages": encode_messages(request, _RequestMessages).items(request.system)}
    if request.tools:
        body["tools"] = [_encode_tool(spec) for spec in request.tools]
        if not request.may_call:
            body["tool_choice"] = "none"
    if request.max_tokens is not None:
        # OpenAI's newer models reject the old name, and most other servers don't know the new one.
        is_openai = "//api.openai.com/" in endpoint.base_url
        body["max_completion_tokens" if is_openai else "max_tokens"] = request.max_tokens
    body["stream"] = endpoint.stream
    if endpoint.stream:
        body["stream_options"] = {"include_usage": True}
    return encode_body(body)


class _RequestMessages:
    """The encoded messages in order, and the results whose images are not encoded yet."""

    def __init__(self) -> None:
        self._items: list[Raw | LazyPart] = []
        self._results_with_pictures: list[CallResult] = []

    def add(self, message: Message) -> None:
        """Add the next message."""
        # All results must directly follow their reply, so their pictures are placed after the last result.
        if self._results_with_pictures and not isinstance(message, CallResult):
            self._items.append(self._lazy_pictures())
            self._results_with_pictures = []
        if not isinstance(message, AssistantMessage) or message.text or message.calls:
            self._items += encode_message_parts(_encode_message, message)
        if isinstance(message, CallResult) and select_pictures(message):
            self._results_with_pictures.append(message)

    def items(self, system: str) -> list[Wire | Raw | LazyPart]:
        """Return all messages, with the system message first."""
        first: list[Wire] = [{"role": "system", "content": system}] if system else []
        return [*first, *self._items, *([self._lazy_pictures()] if self._results_with_pictures else [])]

    def _lazy_pictures(self) -> LazyPart:
        return LazyPart(partial(_encode_pictures, tuple(self._results_with_pictures)))


def _encode_message(message: Message) -> tuple[Wire]:
    match message:
        case UserMessage():
            return (_encode_user(message),)
        case Note(text):
            return ({"role": "user", "content": text},)
        case AssistantMessage():
            return (_encode_assistant(message),)
        case CallResult():
            return ({"role": "tool", "tool_call_id": message.call, "content": format_message_text(message)},)


def _encode_user(message: UserMessage) -> Wire:
    text = format_message_text(message)
    wire: Wire = {"role": "user", "content": text}
    if message.attachments and (pictures := [_encode_picture(file) for file in select_pictures(message)]):
        wire["content"] = [{"type": "text", "text": text}, *pictures] if text else pictures
    if message.author:
        wire["name"] = _INVALID_NAME_CHARACTERS.sub("_", message.author)[:MAX_NAME_CHARACTERS]
    return wire


def _encode_pictures(results: Sequence[CallResult]) -> Wire:
    """Return the images in tool results as a user message, because a tool message can contain only text."""
    parts: list[Wire] = []
    for result in results:
        parts.append({"type": "text", "text": f"[pictures returned by {result.name}, call {result.call}]"})
        parts += (_encode_picture(file) for file in select_pictures(result))
    return {"role": "user", "content": parts}


def _encode_picture(file: Attachment) -> Wire:
    return {"type": "image_url", "image_url": {"url": make_data_url(file)}}


def _encode_assistant(message: AssistantMessage) -> Wire:
    wire: Wire = {"role": "assistant", "content": message.text or None}
    if message.calls:
        wire["tool_calls"] = [_encode_call(call) for call in message.calls]
    return wire


def _encode_call(call: Call) -> Wire:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _encode_tool(spec: ToolSpec) -> Wire:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": function}


class OpenAIChat(HttpProvider):
    """A provider for a Chat Completions API. `session` comes from `open_session`."""

    def __init__(self, session: aiohttp.ClientSession, endpoint: Endpoint) -> None:
        super().__init__(session, endpoint, "/chat/completions", bearer_headers(endpoint), encode_request, ChatDecoder)
