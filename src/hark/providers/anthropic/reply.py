"""What the events of an Anthropic message mean."""

from typing import Any

import msgspec
from msgspec import Struct

from hark.protocol.messages import Reasoning
from hark.protocol.outcomes import Usage
from hark.protocol.provider import CallChunk, ReasoningChunk, ReasoningEnd, TextChunk
from hark.providers.errors import reply_error
from hark.providers.reply_fold import ReplyDraft

_REASONS = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "refusal"}


class _Block(Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None


class _Delta(Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Usage(Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(Struct, gc=False):
    content: list[_Block] | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None
    error: Any = None


class _Event(Struct, gc=False):
    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: _Message | None = None
    usage: _Usage | None = None
    error: Any = None


class _Thought(Struct):
    """Thinking that still comes in: only its end makes it worth keeping."""

    text: list[str]
    signature: str = ""
    data: str = ""


_decode = msgspec.json.Decoder(_Event).decode
_decode_message = msgspec.json.Decoder(_Message).decode


class AnthropicDialect:
    """The events of one message."""

    def __init__(self) -> None:
        self._calls: dict[int, int] = {}  # our index by the block's
        self._thoughts: dict[int, _Thought] = {}
        self._usage = _Usage()

    def take(self, payload: bytes, draft: ReplyDraft) -> None:
        """Take an event; those that are not known mean nothing here."""
        event = _decode(payload)
        match event.type:
            case "content_block_delta" if event.delta is not None:
                self._take_delta(event.index, event.delta, draft)
            case "content_block_start" if event.content_block is not None:
                self._open(event.index, event.content_block, draft)
            case "content_block_stop":
                self._close(event.index, draft)
            case "message_start" if event.message is not None:
                self._count(event.message.usage, draft)
            case "message_delta":
                self._count(event.usage, draft)
                if event.delta is not None and event.delta.stop_reason:
                    draft.reason = _REASONS.get(event.delta.stop_reason, "stop")
            case "message_stop":
                draft.is_done = True
            case _ if event.error:
                draft.error = reply_error(event.error)
            case _:
                pass

    def take_whole(self, payload: bytes, draft: ReplyDraft) -> None:
        """Take a whole message: each block opens and ends at once."""
        message = _decode_message(payload)
        if message.error:
            draft.error = reply_error(message.error)
        for index, block in enumerate(message.content or ()):
            self._open(index, block, draft)
            self._close(index, draft)
        self._count(message.usage, draft)
        if message.stop_reason:
            draft.reason = _REASONS.get(message.stop_reason, "stop")

    def _open(self, index: int, block: _Block, draft: ReplyDraft) -> None:
        match block.type:
            case "text":
                if block.text:
                    draft.chunks.append(TextChunk(block.text))
            case "tool_use":
                arguments = msgspec.json.encode(block.input).decode() if block.input else ""
                self._calls[index] = draft.open_call(block.id or "", block.name or "", arguments)
            case "thinking":
                thought = block.thinking or ""
                self._thoughts[index] = _Thought([thought], block.signature or "")
                if thought:
                    draft.chunks.append(ReasoningChunk(thought))
            case "redacted_thinking":
                self._thoughts[index] = _Thought([], data=block.data or "")
            case _:
                pass  # what the server's own tools do

    def _take_delta(self, index: int, delta: _Delta, draft: ReplyDraft) -> None:
        match delta.type:
            case "text_delta" if delta.text:
                draft.chunks.append(TextChunk(delta.text))
            case "input_json_delta" if delta.partial_json and index in self._calls:
                draft.chunks.append(CallChunk(self._calls[index], arguments=delta.partial_json))
            case "thinking_delta" if delta.thinking:
                draft.chunks.append(ReasoningChunk(delta.thinking))
                self._thoughts.setdefault(index, _Thought([])).text.append(delta.thinking)
            case "signature_delta" if delta.signature:
                self._thoughts.setdefault(index, _Thought([])).signature += delta.signature
            case _:
                pass

    def _close(self, index: int, draft: ReplyDraft) -> None:
        """End a block. The API takes thinking back only with its signature, so that without one it is not kept."""
        thought = self._thoughts.pop(index, None)
        if thought is not None and (thought.signature or thought.data):
            reasoning = Reasoning("".join(thought.text), thought.signature, thought.data)
            draft.chunks.append(ReasoningEnd(reasoning))

    def _count(self, usage: _Usage | None, draft: ReplyDraft) -> None:
        """Take the newest figures. Each is a total, but an event has only those that changed."""
        if usage is None:
            return
        known = self._usage
        self._usage = _Usage(
            usage.input_tokens or known.input_tokens,
            usage.output_tokens or known.output_tokens,
            usage.cache_read_input_tokens or known.cache_read_input_tokens,
            usage.cache_creation_input_tokens or known.cache_creation_input_tokens,
        )
        draft.usage = _usage(self._usage)


def _usage(usage: _Usage) -> Usage:
    """Count what was read from and written to the cache as input, which this API does not."""
    cached = usage.cache_read_input_tokens or 0
    written = usage.cache_creation_input_tokens or 0
    return Usage((usage.input_tokens or 0) + cached + written, usage.output_tokens or 0, cached)
