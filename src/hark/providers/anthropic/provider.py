"""Requests in Anthropic's wire protocol, the Messages API."""

import aiohttp
import msgspec
from msgspec import Raw

from hark.protocol.messages import AssistantMessage, Attachment, Call, CallResult, Message, Note, Reasoning, UserMessage
from hark.protocol.provider import Request
from hark.protocol.tool import ToolSpec
from hark.providers.anthropic.reply import AnthropicDecoder
from hark.providers.endpoint import Endpoint
from hark.providers.http_provider import HttpProvider
from hark.providers.request_parts import (
    LazyPart,
    Wire,
    encode_body,
    encode_message_parts,
    encode_messages,
    format_message_text,
    format_text_with_author,
    make_valid_call_id,
    select_pictures,
    split_reply,
)

# The API requires a limit for the reply, and rejects a limit above the model's maximum.
MAX_TOKENS = 32_000
_MAX_TOKENS_BY_FAMILY = {"claude-3-5": 8192, "claude-3-opus": 4096, "claude-3-sonnet": 4096, "claude-3-haiku": 4096}
_EMPTY_TEXT = "[empty message]"
_CACHE_CONTROL = {"type": "ephemeral"}


def encode_request(request: Request, endpoint: Endpoint) -> bytes:
    """Return the request body. The parts that the next request will repeat are marked for caching.

    `may_call` has no effect: this API drops its cache of the messages when the choice of tools changes.
    """
    body: Wire = {
        "model": endpoint.model,
        "max_tokens": request.max_tokens or _max_reply_tokens(endpoint.model),
        "messages": encode_messages(request, _RequestMessages).messages(),
        "stream": endpoint.stream,
    }
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHE_CONTROL}]
    if request.tools:
        body["tools"] = [_encode_tool(spec) for spec in request.tools]
    return encode_body(body)


def _max_reply_tokens(model: str) -> int:
    return next((limit for family, limit in _MAX_TOKENS_BY_FAMILY.items() if family in model), MAX_TOKENS)


class _RequestMessages:
    """Combines the messages into alternating user and assistant messages, as the API requires."""

    def __init__(self) -> None:
        self._groups: list[_RoleGroup] = []

    def add(self, message: Message) -> None:
        """Add the next message."""
        is_reply = isinstance(message, AssistantMessage)
        if is_reply and not _has_content(message):
            return
        role = "assistant" if is_reply else "user"
        if not self._groups or self._groups[-1].role != role:
            self._groups.append(_RoleGroup(role))
        self._groups[-1].add(message)

    def messages(self) -> list[Wire]:
        """Return one API message per group. The last message is marked for caching if its role is `user`."""
        last = self._groups[-1:]
        is_cached = bool(last) and last[0].role == "user"
        messages = [group.encode() for group in (self._groups[:-1] if is_cached else self._groups)]
        return [*messages, last[0].encode_cached()] if is_cached else messages


class _RoleGroup:
    """Consecutive messages of the same role, which become one API message."""

    def __init__(self, role: str) -> None:
        self.role = role
        self._result_blocks: list[Raw | LazyPart] = []
        self._other_blocks: list[Raw | LazyPart] = []
        self._last: Message | None = None

    def add(self, message: Message) -> None:
        """Add the next message of this role."""
        # Results must come first, so text that the user sent meanwhile is placed after them.
        blocks = self._result_blocks if isinstance(message, CallResult) else self._other_blocks
        if blocks is self._other_blocks or not self._other_blocks:
            self._last = message
        blocks += encode_message_parts(_encode_blocks, message)

    def encode(self) -> Wire:
        """Return the group as one API message."""
        return {"role": self.role, "content": [*self._result_blocks, *self._other_blocks]}

    def encode_cached(self) -> Wire:
        """Return the group as one API message whose last block is marked for caching."""
        assert self._last is not None, "the group has no messages"
        last = {**_encode_blocks(self._last)[-1], "cache_control": _CACHE_CONTROL}
        return {"role": self.role, "content": [*[*self._result_blocks, *self._other_blocks][:-1], last]}


def _has_content(message: AssistantMessage) -> bool:
    """Return whether a reply has text or calls. The API rejects a reply that contains only thinking."""
    return bool(message.text.strip() or message.calls)


def _encode_blocks(message: Message) -> list[Wire]:
    match message:
        case UserMessage():
            pictures = [_encode_picture(file) for file in select_pictures(message)]
            text = format_text_with_author(message)
            return [*pictures, _encode_text(text)] if text.strip() or not pictures else pictures
        case Note(text):
            return [_encode_text(text)]
        case CallResult():
            return [_encode_result(message)]
        case AssistantMessage():
            return _encode_reply(message)


def _encode_text(text: str) -> Wire:
    return {"type": "text", "text": text if text.strip() else _EMPTY_TEXT}


def _encode_picture(file: Attachment) -> Wire:
    return {"type": "image", "source": {"type": "base64", "media_type": file.media_type, "data": file.data}}


def _encode_result(result: CallResult) -> Wire:
    wire: Wire = {"type": "tool_result", "tool_use_id": make_valid_call_id(result.call)}
    text = format_message_text(result)
    # A failed result may contain only text.
    pictures = [] if result.is_error else [_encode_picture(file) for file in select_pictures(result)]
    if pictures:
        wire["content"] = [_encode_text(text), *pictures] if text.strip() else pictures
    elif text.strip():
        wire["content"] = text
    if result.is_error:
        wire["is_error"] = True
    return wire


def _encode_reply(message: AssistantMessage) -> list[Wire]:
    blocks: list[Wire] = []
    for piece in split_reply(message, _is_accepted_reasoning):
        match piece:
            case str() if piece.strip():
                blocks.append({"type": "text", "text": piece})
            case str():
                pass  # an empty text is rejected
            case Reasoning():
                blocks.append(_encode_reasoning(piece))
            case Call():
                blocks.append(_encode_call(piece))
    for block in [block for block in blocks if block["type"] == "text"][-1:]:
        block["text"] = block["text"].rstrip()  # the last text must not end in whitespace
    return blocks


def _is_accepted_reasoning(reasoning: Reasoning) -> bool:
    """Return whether the API accepts this reasoning. Unsigned reasoning and reasoning from other APIs are rejected."""
    return bool(reasoning.signature or (reasoning.data and not reasoning.data.startswith("{")))


def _encode_reasoning(reasoning: Reasoning) -> Wire:
    if reasoning.signature:
        return {"type": "thinking", "thinking": reasoning.text, "signature": reasoning.signature}
    return {"type": "redacted_thinking", "data": reasoning.data}


def _encode_call(call: Call) -> Wire:
    arguments: Wire = msgspec.json.decode(call.arguments)
    return {"type": "tool_use", "id": make_valid_call_id(call.id), "name": call.name, "input": arguments}


def _encode_tool(spec: ToolSpec) -> Wire:
    return {"name": spec.name, "description": spec.description, "input_schema": spec.parameters}


VERSION = "2023-06-01"


class Anthropic(HttpProvider):
    """A provider for the Messages API. `session` comes from `open_session`."""

    def __init__(self, session: aiohttp.ClientSession, endpoint: Endpoint) -> None:
        headers = {"anthropic-version": VERSION}
        if endpoint.key:
            headers["x-api-key"] = endpoint.key
        super().__init__(session, endpoint, "/messages", headers, encode_request, AnthropicDecoder)
