"""The wire protocol that most model servers speak: OpenAI's chat completions."""

import re
from collections.abc import Sequence
from functools import partial

import aiohttp
from msgspec import Raw

from hark.protocol.messages import AssistantMessage, Attachment, Call, CallResult, Message, Note, UserMessage
from hark.protocol.provider import Request
from hark.protocol.tool import ToolSpec
from hark.providers.endpoint import Endpoint
from hark.providers.http_provider import HttpProvider, bearer
from hark.providers.openai.chat_reply import ChatDialect
from hark.providers.request_parts import Late, Wire, data_url, encoded, folded, kept, pictures_of, text_of

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
MAX_NAME = 64


def encode_request(request: Request, endpoint: Endpoint) -> bytes:
    """Return the body of a request."""
    body: Wire = {"model": endpoint.model, "messages": folded(request, _Chat).items(request.system)}
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    if request.max_tokens is not None:
        # OpenAI's own newer models refuse the old name, most other servers don't know the new one.
        is_openai = "//api.openai.com/" in endpoint.base_url
        body["max_completion_tokens" if is_openai else "max_tokens"] = request.max_tokens
    body["stream"] = endpoint.stream
    if endpoint.stream:
        body["stream_options"] = {"include_usage": True}
    return encoded(body)


class _Chat:
    """The messages in their order, and the results whose pictures are still to be shown."""

    def __init__(self) -> None:
        self._items: list[Raw | Late] = []
        self._results: list[CallResult] = []

    def add(self, message: Message) -> None:
        """Take the next message."""
        # All results of a reply stand right behind it, so what they show comes behind the last of them.
        if self._results and not isinstance(message, CallResult):
            self._items.append(self._shown())
            self._results = []
        if not isinstance(message, AssistantMessage) or message.text or message.calls:
            self._items += kept(_message, message)
        if isinstance(message, CallResult) and pictures_of(message):
            self._results.append(message)

    def items(self, system: str) -> list[Wire | Raw | Late]:
        """Return all messages, the system's first."""
        first: list[Wire] = [{"role": "system", "content": system}] if system else []
        return [*first, *self._items, *([self._shown()] if self._results else [])]

    def _shown(self) -> Late:
        return Late(partial(_shown_by, tuple(self._results)))


def _message(message: Message) -> tuple[Wire]:
    match message:
        case UserMessage():
            return (_user(message),)
        case Note(text):
            return ({"role": "user", "content": text},)
        case AssistantMessage():
            return (_assistant(message),)
        case CallResult():
            return ({"role": "tool", "tool_call_id": message.call, "content": text_of(message)},)


def _user(message: UserMessage) -> Wire:
    text = text_of(message)
    wire: Wire = {"role": "user", "content": text}
    if message.attachments and (pictures := [_picture(file) for file in pictures_of(message)]):
        wire["content"] = [{"type": "text", "text": text}, *pictures] if text else pictures
    if message.author:
        wire["name"] = _NOT_IN_NAMES.sub("_", message.author)[:MAX_NAME]
    return wire


def _shown_by(results: Sequence[CallResult]) -> Wire:
    """Return the pictures of calls as a person's, since a tool's message can hold text alone."""
    pictures: list[Wire] = []
    for result in results:
        pictures.append({"type": "text", "text": f"[pictures returned by {result.name}, call {result.call}]"})
        pictures += (_picture(file) for file in pictures_of(result))
    return {"role": "user", "content": pictures}


def _picture(file: Attachment) -> Wire:
    return {"type": "image_url", "image_url": {"url": data_url(file)}}


def _assistant(message: AssistantMessage) -> Wire:
    wire: Wire = {"role": "assistant", "content": message.text or None}
    if message.calls:
        wire["tool_calls"] = [_call(call) for call in message.calls]
    return wire


def _call(call: Call) -> Wire:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _tool(spec: ToolSpec) -> Wire:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": function}


class OpenAIChat(HttpProvider):
    """A model behind a chat completions API, over a session from `open_session`."""

    def __init__(self, session: aiohttp.ClientSession, endpoint: Endpoint) -> None:
        super().__init__(session, endpoint, "/chat/completions", bearer(endpoint), encode_request, ChatDialect)
