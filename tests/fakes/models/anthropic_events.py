"""Writes fake replies as events of Anthropic's Messages API."""

import json
from collections.abc import Iterable
from typing import Any

from hark.protocol.messages import Reasoning
from hark.protocol.outcomes import Usage
from hark.protocol.provider import (
    CallChunk,
    Chunk,
    EndChunk,
    KeepAliveChunk,
    ReasoningChunk,
    ReasoningEnd,
    TextChunk,
    UsageChunk,
)

Wire = dict[str, Any]
_REASONS = {"stop": "end_turn", "calls": "tool_use", "length": "max_tokens", "refusal": "refusal"}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def block_start(index: int, block: Wire) -> Wire:
    return {"type": "content_block_start", "index": index, "content_block": block}


def block_delta(index: int, kind: str, **fields: Any) -> Wire:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def block_stop(index: int) -> Wire:
    return {"type": "content_block_stop", "index": index}


def usage_fields(usage: Usage) -> Wire:
    plain = usage.input_tokens - usage.cached_tokens
    cache = {"cache_read_input_tokens": usage.cached_tokens, "cache_creation_input_tokens": 0}
    return {"input_tokens": plain, "output_tokens": usage.output_tokens, **cache}


def message(**fields: Any) -> Wire:
    head: Wire = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake", "content": []}
    return {**head, "stop_reason": None, "stop_sequence": None, "usage": usage_fields(Usage()), **fields}


def message_end(reason: str, usage: Usage) -> list[Wire]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [{"type": "message_delta", "delta": delta, "usage": usage_fields(usage)}, {"type": "message_stop"}]


class AnthropicEventWriter:
    """Writes one message. Blocks are opened on demand and closed when the next one starts."""

    terminator = b""

    def __init__(self) -> None:
        self._blocks: list[Wire] = []
        self._open = ""  # the kind of the block that the next delta may belong to
        self._calls: dict[int, int] = {}  # block index by call index
        self._usage = Usage()
        self._reason = ""
        self._has_begun = False

    def events(self, chunks: Iterable[Chunk]) -> list[Wire]:
        events: list[Wire] = []
        for chunk in chunks:
            if not self._has_begun:
                self._has_begun = True
                events += [{"type": "message_start", "message": message()}, {"type": "ping"}]
            events += self._event(chunk)
        return events

    def complete_reply(self, chunks: Iterable[Chunk]) -> Wire:
        for chunk in chunks:
            self._event(chunk)
        blocks: list[Wire] = []
        for block in self._blocks:
            if block["type"] == "tool_use":
                block = {**block, "input": json.loads(block["input"] or "{}")}
            if block["type"] != "thinking" or block["signature"]:
                blocks.append(block)
        return message(content=blocks, stop_reason=self._reason, usage=usage_fields(self._usage))

    def error(self, status: int, text: str) -> Wire:
        return {"type": "error", "error": {"type": _ERRORS.get(status, "api_error"), "message": text}}

    def prompt(self, body: Wire) -> str:
        content = body["messages"][-1]["content"]
        return content if isinstance(content, str) else str(content[-1].get("text"))

    def _event(self, chunk: Chunk) -> list[Wire]:
        match chunk:
            case TextChunk(text):
                events = self._begin("text", {"type": "text", "text": ""})
                self._blocks[-1]["text"] += text
                return [*events, block_delta(len(self._blocks) - 1, "text_delta", text=text)]
            case ReasoningChunk(text):
                events = self._begin("thinking", {"type": "thinking", "thinking": "", "signature": ""})
                self._blocks[-1]["thinking"] += text
                return [*events, block_delta(len(self._blocks) - 1, "thinking_delta", thinking=text)]
            case ReasoningEnd(reasoning):
                return self._end_reasoning(reasoning)
            case CallChunk():
                return self._call(chunk)
            case UsageChunk(usage):
                self._usage = usage
                return []
            case KeepAliveChunk():
                return [{"type": "ping"}]
            case EndChunk(reason):
                self._reason = _REASONS[reason]
                return [*self._close(), *message_end(self._reason, self._usage)]

    def _begin(self, kind: str, block: Wire) -> list[Wire]:
        if self._open == kind:
            return []
        events = [*self._close(), block_start(len(self._blocks), dict(block))]
        self._blocks.append(block)
        self._open = kind
        return events

    def _close(self) -> list[Wire]:
        events = [block_stop(index) for index in self._calls.values()] if self._open == "calls" else []
        if self._open in ("text", "thinking"):
            events = [block_stop(len(self._blocks) - 1)]
        self._open = ""
        return events

    def _end_reasoning(self, reasoning: Reasoning) -> list[Wire]:
        if reasoning.data:
            events = self._begin("redacted", {"type": "redacted_thinking", "data": reasoning.data})
            self._open = ""
            return [*events, block_stop(len(self._blocks) - 1)]
        events = self._begin("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        self._blocks[-1]["signature"] = reasoning.signature
        signed = block_delta(len(self._blocks) - 1, "signature_delta", signature=reasoning.signature)
        return [*events, signed, *self._close()]

    def _call(self, chunk: CallChunk) -> list[Wire]:
        events: list[Wire] = []
        if chunk.index not in self._calls:
            events = self._close() if self._open != "calls" else []
            self._open = "calls"
            self._calls[chunk.index] = len(self._blocks)
            block = {"type": "tool_use", "id": chunk.id, "name": chunk.name}
            events.append(block_start(len(self._blocks), {**block, "input": {}}))
            self._blocks.append({**block, "input": ""})
        index = self._calls[chunk.index]
        self._blocks[index]["input"] += chunk.arguments
        return [*events, block_delta(index, "input_json_delta", partial_json=chunk.arguments)]
