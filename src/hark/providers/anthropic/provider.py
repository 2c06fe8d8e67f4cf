"""The wire protocol of Anthropic's models: messages."""

import aiohttp
import msgspec
from msgspec import Raw

from hark.protocol.messages import AssistantMessage, Attachment, Call, CallResult, Message, Note, Reasoning, UserMessage
from hark.protocol.provider import Request
from hark.protocol.tool import ToolSpec
from hark.providers.anthropic.reply import AnthropicDialect
from hark.providers.endpoint import Endpoint
from hark.providers.http_provider import HttpProvider
from hark.providers.request_parts import (
    Late,
    Wire,
    call_id,
    encoded,
    folded,
    in_order,
    kept,
    pictures_of,
    signed_text_of,
    text_of,
)

# The API must be told how long a reply may be, and refuses more than the model can say.
MAX_TOKENS = 32_000
_MAX_TOKENS_OF_OLD = {"claude-3-5": 8192, "claude-3-opus": 4096, "claude-3-sonnet": 4096, "claude-3-haiku": 4096}
_NO_WORDS = "[a message without words]"
_CACHED = {"type": "ephemeral"}


def encode_request(request: Request, endpoint: Endpoint) -> bytes:
    """Return the body of a request; what it shares with the next one is marked to be cached."""
    body: Wire = {
        "model": endpoint.model,
        "max_tokens": request.max_tokens or _max_tokens(endpoint.model),
        "messages": folded(request, _Talk).messages(),
        "stream": endpoint.stream,
    }
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHED}]
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    return encoded(body)


def _max_tokens(model: str) -> int:
    return next((limit for family, limit in _MAX_TOKENS_OF_OLD.items() if family in model), MAX_TOKENS)


class _Talk:
    """The two sides in turn, for two neighbours must not have the same."""

    def __init__(self) -> None:
        self._sides: list[_Side] = []

    def add(self, message: Message) -> None:
        """Take the next message."""
        is_reply = isinstance(message, AssistantMessage)
        if is_reply and not _says_something(message):
            return
        role = "assistant" if is_reply else "user"
        if not self._sides or self._sides[-1].role != role:
            self._sides.append(_Side(role))
        self._sides[-1].add(message)

    def messages(self) -> list[Wire]:
        """Return one message per change of sides. All is cached: the next request begins with the same."""
        last = self._sides[-1:]
        is_marked = bool(last) and last[0].role == "user"
        sides = [side.message() for side in (self._sides[:-1] if is_marked else self._sides)]
        return [*sides, last[0].marked()] if is_marked else sides


class _Side:
    """What one side said until the other did."""

    def __init__(self, role: str) -> None:
        self.role = role
        self._results: list[Raw | Late] = []
        self._others: list[Raw | Late] = []
        self._last: Message | None = None

    def add(self, message: Message) -> None:
        """Take the next message of this side."""
        # Results must come first: what a person said meanwhile stands behind them.
        blocks = self._results if isinstance(message, CallResult) else self._others
        if blocks is self._others or not self._others:
            self._last = message
        blocks += kept(_blocks, message)

    def message(self) -> Wire:
        """Return it as one message."""
        return {"role": self.role, "content": [*self._results, *self._others]}

    def marked(self) -> Wire:
        """Return it as one message whose last block is marked to be cached."""
        assert self._last is not None, "a side begins with a message"
        last = {**_blocks(self._last)[-1], "cache_control": _CACHED}
        return {"role": self.role, "content": [*[*self._results, *self._others][:-1], last]}


def _says_something(message: AssistantMessage) -> bool:
    """Tell whether more than thinking is left of it: alone, that is refused."""
    return bool(message.text.strip() or message.calls)


def _blocks(message: Message) -> list[Wire]:
    match message:
        case UserMessage():
            pictures = [_picture(file) for file in pictures_of(message)]
            text = signed_text_of(message)
            return [*pictures, _text(text)] if text.strip() or not pictures else pictures
        case Note(text):
            return [_text(text)]
        case CallResult():
            return [_result(message)]
        case AssistantMessage():
            return _reply(message)


def _text(text: str) -> Wire:
    return {"type": "text", "text": text if text.strip() else _NO_WORDS}


def _picture(file: Attachment) -> Wire:
    return {"type": "image", "source": {"type": "base64", "media_type": file.media_type, "data": file.data}}


def _result(result: CallResult) -> Wire:
    wire: Wire = {"type": "tool_result", "tool_use_id": call_id(result.call)}
    text = text_of(result)
    # What failed may hold nothing but text.
    pictures = [] if result.is_error else [_picture(file) for file in pictures_of(result)]
    if pictures:
        wire["content"] = [_text(text), *pictures] if text.strip() else pictures
    elif text.strip():
        wire["content"] = text
    if result.is_error:
        wire["is_error"] = True
    return wire


def _reply(message: AssistantMessage) -> list[Wire]:
    blocks: list[Wire] = []
    for piece in in_order(message, _is_ours):
        match piece:
            case str() if piece.strip():
                blocks.append({"type": "text", "text": piece})
            case str():
                pass  # an empty text is refused
            case Reasoning():
                blocks.append(_thought(piece))
            case Call():
                blocks.append(_call(piece))
    for block in [block for block in blocks if block["type"] == "text"][-1:]:
        block["text"] = block["text"].rstrip()  # a text at the very end must not end in whitespace
    return blocks


def _is_ours(thought: Reasoning) -> bool:
    """Tell whether a thought may go back: what another API made, or what was never signed, would be refused."""
    return bool(thought.signature or (thought.data and not thought.data.startswith("{")))


def _thought(thought: Reasoning) -> Wire:
    if thought.signature:
        return {"type": "thinking", "thinking": thought.text, "signature": thought.signature}
    return {"type": "redacted_thinking", "data": thought.data}


def _call(call: Call) -> Wire:
    arguments: Wire = msgspec.json.decode(call.arguments)
    return {"type": "tool_use", "id": call_id(call.id), "name": call.name, "input": arguments}


def _tool(spec: ToolSpec) -> Wire:
    return {"name": spec.name, "description": spec.description, "input_schema": spec.parameters}


VERSION = "2023-06-01"


class Anthropic(HttpProvider):
    """A model behind a messages API, over a session from `open_session`."""

    def __init__(self, session: aiohttp.ClientSession, endpoint: Endpoint) -> None:
        headers = {"anthropic-version": VERSION}
        if endpoint.key:
            headers["x-api-key"] = endpoint.key
        super().__init__(session, endpoint, "/messages", headers, encode_request, AnthropicDialect)
