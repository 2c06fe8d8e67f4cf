"""What the events of an OpenAI response mean."""

from typing import Any

import msgspec
from msgspec import Struct

from hark.protocol.messages import Reasoning
from hark.protocol.provider import CallChunk, ReasoningChunk, ReasoningEnd, TextChunk
from hark.providers.errors import reply_error
from hark.providers.reply_fold import ReplyDraft, TokenDetails, usage_of

_REASONS = {"max_output_tokens": "length", "content_filter": "refusal"}
_BETWEEN_PARTS = "\n\n"


class _Part(Struct, gc=False, omit_defaults=True):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class _Item(Struct, gc=False):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    summary: list[_Part] | None = None
    content: list[_Part] | None = None
    encrypted_content: str | None = None
    status: str | None = None


class _Usage(Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: TokenDetails | None = None


class _Incomplete(Struct, gc=False):
    reason: str | None = None


class _Response(Struct, gc=False):
    status: str | None = None
    output: list[_Item] | None = None
    usage: _Usage | None = None
    error: Any = None
    incomplete_details: _Incomplete | None = None


class _Event(Struct, gc=False):
    type: str = ""
    delta: str | None = None
    output_index: int = 0
    summary_index: int = 0
    item: _Item | None = None
    response: _Response | None = None
    error: Any = None
    code: Any = None
    message: Any = None


class _OpenCall(Struct):
    index: int
    has_arguments: bool = False


_decode = msgspec.json.Decoder(_Event).decode
_decode_response = msgspec.json.Decoder(_Response).decode


class ResponsesDialect:
    """The events of one response."""

    def __init__(self) -> None:
        self._calls: dict[int, _OpenCall] = {}  # by the item's index

    def take(self, payload: bytes, draft: ReplyDraft) -> None:
        """Take an event; those that are not known mean nothing here, or repeat what the deltas said."""
        event = _decode(payload)
        match event.type:
            case "response.output_text.delta" if event.delta:
                draft.chunks.append(TextChunk(event.delta))
            case "response.function_call_arguments.delta" if event.delta:
                self._take_arguments(event.output_index, event.delta, draft)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" if event.delta:
                draft.chunks.append(ReasoningChunk(event.delta))
            case "response.reasoning_summary_part.added" if event.summary_index:
                draft.chunks.append(ReasoningChunk(_BETWEEN_PARTS))
            case "response.refusal.delta" if event.delta:
                draft.chunks.append(TextChunk(event.delta))
                draft.is_refused = True
            case "response.output_item.added" if event.item is not None:
                self._open(event.output_index, event.item, draft)
            case "response.output_item.done" if event.item is not None:
                self._close(event.output_index, event.item, draft)
            case "response.completed" | "response.incomplete" | "response.failed" if event.response is not None:
                self._end(event.response, draft)
            case "error":
                draft.error = reply_error(event.error or {"code": event.code, "message": event.message})
            case _ if event.error:
                draft.error = reply_error(event.error)
            case _:
                pass

    def take_whole(self, payload: bytes, draft: ReplyDraft) -> None:
        """Take a whole response: each item opens and ends at once."""
        response = _decode_response(payload)
        for index, item in enumerate(response.output or ()):
            self._open(index, item, draft)
            self._take_parts(item, draft)
            self._close(index, item, draft)
        if response.status or response.error:
            self._end(response, draft)

    def _open(self, index: int, item: _Item, draft: ReplyDraft) -> None:
        if item.type == "function_call":
            self._calls[index] = _OpenCall(draft.open_call(item.call_id or item.id or "", item.name or ""))

    def _take_arguments(self, index: int, arguments: str, draft: ReplyDraft) -> None:
        if call := self._calls.get(index):
            call.has_arguments = True
            draft.chunks.append(CallChunk(call.index, arguments=arguments))

    def _close(self, index: int, item: _Item, draft: ReplyDraft) -> None:
        """End an item. Reasoning is worth keeping only whole, and with the part that this API can read back."""
        if item.type == "function_call":
            if index not in self._calls:
                self._open(index, item, draft)
            if item.arguments and not self._calls[index].has_arguments:  # the server sent them in one piece
                self._take_arguments(index, item.arguments, draft)
        if item.type == "reasoning" and item.id and item.encrypted_content and item.status != "incomplete":
            draft.chunks.append(ReasoningEnd(_kept(item)))

    def _take_parts(self, item: _Item, draft: ReplyDraft) -> None:
        for part in item.content or ():
            words = part.text or part.refusal
            if words:
                draft.chunks.append(ReasoningChunk(words) if item.type == "reasoning" else TextChunk(words))
            draft.is_refused = draft.is_refused or bool(part.refusal)
        if item.summary:
            draft.chunks.append(ReasoningChunk(_summary(item)))

    def _end(self, response: _Response, draft: ReplyDraft) -> None:
        if response.usage is not None:
            usage = response.usage
            draft.usage = usage_of(usage.input_tokens, usage.output_tokens, usage.input_tokens_details)
        if response.status == "failed" or response.error:
            draft.error = reply_error(response.error)
            return
        why = response.incomplete_details.reason if response.incomplete_details is not None else None
        draft.reason = _REASONS.get(why or "", "length" if response.status == "incomplete" else "stop")
        draft.is_done = True


def _kept(item: _Item) -> Reasoning:
    sent_back = {"type": "reasoning", "id": item.id, "summary": item.summary or []}
    if item.content:
        sent_back["content"] = item.content
    sent_back["encrypted_content"] = item.encrypted_content
    return Reasoning(_summary(item), data=msgspec.json.encode(sent_back).decode())


def _summary(item: _Item) -> str:
    return _BETWEEN_PARTS.join(part.text for part in item.summary or () if part.text)
