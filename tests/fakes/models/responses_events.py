"""Writes fake replies as events of OpenAI's Responses API."""

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
_INCOMPLETE = {"length": "max_output_tokens", "refusal": "content_filter"}


def usage_fields(usage: Usage) -> Wire:
    totals = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    details = {"input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0}}
    total = usage.input_tokens + usage.output_tokens
    return {**totals, **details, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": total}


def response(status: str = "in_progress", **fields: Any) -> Wire:
    head: Wire = {"id": "resp_1", "object": "response", "created_at": 1.0, "status": status, "model": "fake"}
    choices: Wire = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "output": []}
    return {**head, **choices, "error": None, "incomplete_details": None, **fields}


class ResponsesEventWriter:
    """Writes one response. Items are added on demand and completed when the next one starts."""

    terminator = b""

    def __init__(self) -> None:
        self._items: list[Wire] = []
        self._open = ""  # the type of the item that the next delta may belong to
        self._calls: dict[int, int] = {}  # item index by call index
        self._usage = Usage()
        self._number = 0
        self._final_response: Wire = {}

    def events(self, chunks: Iterable[Chunk]) -> list[Wire]:
        events: list[Wire] = []
        for chunk in chunks:
            if not self._number:
                events += [self._new_event("response.created", response=response())]
            events += self._event(chunk)
        return events

    def complete_reply(self, chunks: Iterable[Chunk]) -> Wire:
        for chunk in chunks:
            self._event(chunk)
        return self._final_response

    def error(self, status: int, text: str) -> Wire:
        return {"error": {"message": text, "type": None, "param": None, "code": None}}

    def prompt(self, body: Wire) -> str:
        return str(body["input"][-1].get("content"))

    def _event(self, chunk: Chunk) -> list[Wire]:
        match chunk:
            case TextChunk(text):
                events = self._begin("message", {"role": "assistant", "content": [], "status": "in_progress"})
                return [*events, *self._text_delta(text)]
            case ReasoningChunk(text):
                return [*self._begin("reasoning", {"summary": []}), *self._reasoning_delta(text)]
            case ReasoningEnd(reasoning):
                return self._end_reasoning(reasoning)
            case CallChunk():
                return self._call(chunk)
            case UsageChunk(usage):
                self._usage = usage
                return []
            case KeepAliveChunk():
                return []
            case EndChunk(reason):
                return [*self._close(), self._end_event(reason)]

    def _new_event(self, kind: str, **fields: Any) -> Wire:
        self._number += 1
        return {"type": kind, "sequence_number": self._number, **fields}

    def _item_event(self, kind: str, **fields: Any) -> Wire:
        index = len(self._items) - 1
        return self._new_event(kind, item_id=self._items[index]["id"], output_index=index, **fields)

    def _begin(self, kind: str, item: Wire) -> list[Wire]:
        if self._open == kind:
            return []
        events = [*self._close(), *self._add(kind, item)]
        self._open = kind
        return events

    def _add(self, kind: str, item: Wire) -> list[Wire]:
        index = len(self._items)
        item = {"type": kind, "id": f"{kind}_{index}", **item}
        self._items.append(item)
        return [self._new_event("response.output_item.added", output_index=index, item=dict(item))]

    def _text_delta(self, text: str) -> list[Wire]:
        parts: list[Wire] = self._items[-1]["content"]
        events: list[Wire] = []
        if not parts:
            parts.append({"type": "output_text", "text": "", "annotations": []})
            events.append(self._item_event("response.content_part.added", content_index=0, part=dict(parts[0])))
        parts[0]["text"] += text
        return [*events, self._item_event("response.output_text.delta", content_index=0, delta=text, logprobs=[])]

    def _reasoning_delta(self, text: str) -> list[Wire]:
        parts: list[Wire] = self._items[-1]["summary"]
        events: list[Wire] = []
        if not parts:
            parts.append({"type": "summary_text", "text": ""})
            added = "response.reasoning_summary_part.added"
            events.append(self._item_event(added, summary_index=0, part=dict(parts[0])))
        parts[0]["text"] += text
        return [*events, self._item_event("response.reasoning_summary_text.delta", summary_index=0, delta=text)]

    def _end_reasoning(self, reasoning: Reasoning) -> list[Wire]:
        events = self._begin("reasoning", {"summary": []})
        self._items[-1]["encrypted_content"] = reasoning.signature or reasoning.data
        return [*events, *self._close()]

    def _call(self, chunk: CallChunk) -> list[Wire]:
        events: list[Wire] = []
        if chunk.index not in self._calls:
            events = self._close() if self._open != "function_call" else []
            self._open = "function_call"
            self._calls[chunk.index] = len(self._items)
            item = {"call_id": chunk.id, "name": chunk.name, "arguments": "", "status": "in_progress"}
            events += self._add("function_call", item)
        index = self._calls[chunk.index]
        item = self._items[index]
        item["arguments"] += chunk.arguments
        kind = "response.function_call_arguments.delta"
        return [*events, self._new_event(kind, item_id=item["id"], output_index=index, delta=chunk.arguments)]

    def _close(self) -> list[Wire]:
        is_calls = self._open == "function_call"
        indexes = list(self._calls.values()) if is_calls else [len(self._items) - 1] if self._open else []
        self._open = ""
        for index in indexes:
            if self._items[index]["type"] != "reasoning":
                self._items[index]["status"] = "completed"
        done = "response.output_item.done"
        return [self._new_event(done, output_index=index, item=dict(self._items[index])) for index in indexes]

    def _end_event(self, reason: str) -> Wire:
        incomplete = _INCOMPLETE.get(reason)
        status = "incomplete" if incomplete else "completed"
        details = {"reason": incomplete} if incomplete else None
        usage = usage_fields(self._usage)
        self._final_response = response(status, output=self._items, usage=usage, incomplete_details=details)
        return self._new_event(f"response.{status}", response=self._final_response)
