"""Writes fake replies as events of OpenAI's chat completions API."""

from collections.abc import Iterable
from typing import Any

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
_REASONS = {"stop": "stop", "calls": "tool_calls", "length": "length", "refusal": "content_filter"}


def delta(finish: str | None = None, **fields: Any) -> Wire:
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "fake", "choices": [choice]}


def usage(prompt: int, completion: int, cached: int = 0) -> Wire:
    details = {"cached_tokens": cached}
    total = prompt + completion
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
    return {**delta(), "choices": [], "usage": {**counts, "prompt_tokens_details": details}}


def call(index: int, call_id: str, name: str, arguments: str) -> Wire:
    return {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def call_part(index: int, arguments: str) -> Wire:
    return {"index": index, "function": {"arguments": arguments}}


class ChatEventWriter:
    """Writes one completion."""

    terminator = b"data: [DONE]\n\n"

    def __init__(self) -> None:
        self._usage: list[Wire] = []

    def events(self, chunks: Iterable[Chunk]) -> list[Wire]:
        return [event for chunk in chunks for event in self._event(chunk)]

    def complete_reply(self, chunks: Iterable[Chunk]) -> Wire:
        message: Wire = {"role": "assistant", "content": None}
        reply: Wire = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "fake"}
        finish = ""
        calls: dict[int, Wire] = {}
        for chunk in chunks:
            match chunk:
                case TextChunk(text):
                    message["content"] = (message["content"] or "") + text
                case ReasoningChunk(text):
                    message["reasoning_content"] = message.get("reasoning_content", "") + text
                case CallChunk():
                    opened = calls.setdefault(chunk.index, call(chunk.index, chunk.id, chunk.name, ""))
                    opened["function"]["arguments"] += chunk.arguments
                case UsageChunk(counts):
                    wire = usage(counts.input_tokens, counts.output_tokens, counts.cached_tokens)
                    reply["usage"] = wire["usage"]
                case EndChunk(reason):
                    finish = _REASONS[reason]
                case ReasoningEnd() | KeepAliveChunk():
                    pass
        if calls:
            message["tool_calls"] = list(calls.values())
        return {**reply, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}

    def error(self, status: int, text: str) -> Wire:
        return {"error": {"message": text, "type": None, "param": None, "code": None}}

    def prompt(self, body: Wire) -> str:
        return str(body["messages"][-1]["content"])

    def _event(self, chunk: Chunk) -> list[Wire]:
        match chunk:
            case TextChunk(text):
                return [delta(content=text)]
            case ReasoningChunk(text):
                return [delta(reasoning_content=text)]
            case CallChunk() if chunk.id or chunk.name:
                return [delta(tool_calls=[call(chunk.index, chunk.id, chunk.name, chunk.arguments)])]
            case CallChunk():
                return [delta(tool_calls=[call_part(chunk.index, chunk.arguments)])]
            case UsageChunk(counts):
                self._usage = [usage(counts.input_tokens, counts.output_tokens, counts.cached_tokens)]
                return []
            case EndChunk(reason):
                return [delta(_REASONS[reason]), *self._usage]
            case KeepAliveChunk():
                return []
            case ReasoningEnd():
                return []  # this API streams reasoning but accepts none back
