"""Decodes the events of an Anthropic reply."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from hark.protocol.messages import Reasoning
from hark.protocol.outcomes import Usage
from hark.protocol.provider import CallChunk, ReasoningChunk, ReasoningEnd, TextChunk
from hark.providers.errors import parse_reply_error
from hark.providers.reply_parser import ReplyDraft, decode_usage

_END_REASONS = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "refusal"}


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
    usage: Raw = Raw()
    error: Any = None


class _Event(Struct, gc=False):
    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: _Message | None = None
    usage: Raw = Raw()
    error: Any = None


class _OpenReasoning(Struct):
    """Reasoning that is still arriving and is stored only once it is complete."""

    text: list[str]
    signature: str = ""
    data: str = ""


_decode = msgspec.json.Decoder(_Event, strict=False).decode
_decode_message = msgspec.json.Decoder(_Message).decode


class AnthropicDecoder:
    """Decodes the events of one reply."""

    def __init__(self) -> None:
        self._calls: dict[int, int] = {}  # the index of the call in our reply, by the index of its block
        self._open_reasoning: dict[int, _OpenReasoning] = {}
        self._usage = _Usage()

    def decode_event(self, payload: bytes, draft: ReplyDraft) -> None:
        """Decode an event. Unknown events are ignored."""
        event = _decode(payload)
        match event.type:
            case "content_block_delta" if event.delta is not None:
                self._decode_delta(event.index, event.delta, draft)
            case "content_block_start" if event.content_block is not None:
                self._open_block(event.index, event.content_block, draft)
            case "content_block_stop":
                self._close_block(event.index, draft)
            case "message_start" if event.message is not None:
                self._update_usage(event.message.usage, draft)
            case "message_delta":
                self._update_usage(event.usage, draft)
                if event.delta is not None and event.delta.stop_reason:
                    draft.reason = _END_REASONS.get(event.delta.stop_reason, "stop")
            case "message_stop":
                draft.is_done = True
            case _ if event.error:
                draft.error = parse_reply_error(event.error)
            case _:
                pass

    def decode_reply(self, payload: bytes, draft: ReplyDraft) -> None:
        """Decode a complete reply. Each block is opened and closed at once."""
        message = _decode_message(payload)
        if message.error:
            draft.error = parse_reply_error(message.error)
        blocks = message.content or []
        if blocks and _END_REASONS.get(message.stop_reason or "") == "length":
            blocks[-1].input = None  # incomplete, although the server sends it as an object
        for index, block in enumerate(blocks):
            self._open_block(index, block, draft)
            self._close_block(index, draft)
        self._update_usage(message.usage, draft)
        if message.stop_reason:
            draft.reason = _END_REASONS.get(message.stop_reason, "stop")

    def _open_block(self, index: int, block: _Block, draft: ReplyDraft) -> None:
        match block.type:
            case "text":
                if block.text:
                    draft.chunks.append(TextChunk(block.text))
            case "tool_use":
                arguments = msgspec.json.encode(block.input).decode() if block.input else ""
                self._calls[index] = draft.open_call(block.id or "", block.name or "", arguments)
            case "thinking":
                text = block.thinking or ""
                self._open_reasoning[index] = _OpenReasoning([text], block.signature or "")
                if text:
                    draft.chunks.append(ReasoningChunk(text))
            case "redacted_thinking":
                self._open_reasoning[index] = _OpenReasoning([], data=block.data or "")
            case _:
                pass  # blocks of server-side tools are ignored

    def _decode_delta(self, index: int, delta: _Delta, draft: ReplyDraft) -> None:
        match delta.type:
            case "text_delta" if delta.text:
                draft.chunks.append(TextChunk(delta.text))
            case "input_json_delta" if delta.partial_json and index in self._calls:
                draft.chunks.append(CallChunk(self._calls[index], arguments=delta.partial_json))
            case "thinking_delta" if delta.thinking:
                draft.chunks.append(ReasoningChunk(delta.thinking))
                self._open_reasoning.setdefault(index, _OpenReasoning([])).text.append(delta.thinking)
            case "signature_delta" if delta.signature:
                self._open_reasoning.setdefault(index, _OpenReasoning([])).signature += delta.signature
            case _:
                pass

    def _close_block(self, index: int, draft: ReplyDraft) -> None:
        """Close a block. Reasoning without a signature is dropped, because the API would later reject it."""
        open_reasoning = self._open_reasoning.pop(index, None)
        if open_reasoning is not None and (open_reasoning.signature or open_reasoning.data):
            reasoning = Reasoning("".join(open_reasoning.text), open_reasoning.signature, open_reasoning.data)
            draft.chunks.append(ReasoningEnd(reasoning))

    def _update_usage(self, payload: Raw, draft: ReplyDraft) -> None:
        """Update the token counts. Each count is a total, but an event contains only the counts that changed."""
        usage = decode_usage(payload, _Usage)
        if usage is None:
            return
        previous = self._usage
        self._usage = _Usage(
            usage.input_tokens or previous.input_tokens,
            usage.output_tokens or previous.output_tokens,
            usage.cache_read_input_tokens or previous.cache_read_input_tokens,
            usage.cache_creation_input_tokens or previous.cache_creation_input_tokens,
        )
        draft.usage = _total_usage(self._usage)


def _total_usage(usage: _Usage) -> Usage:
    """Return the usage with cached tokens included in the input, which this API counts separately."""
    cached = usage.cache_read_input_tokens or 0
    written = usage.cache_creation_input_tokens or 0
    return Usage((usage.input_tokens or 0) + cached + written, usage.output_tokens or 0, cached)
