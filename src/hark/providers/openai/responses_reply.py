"""Decodes the events of an OpenAI response."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from hark.protocol.messages import Reasoning
from hark.protocol.provider import CallChunk, ReasoningChunk, ReasoningEnd, TextChunk
from hark.providers.errors import parse_reply_error
from hark.providers.reply_parser import ReplyDraft, TokenDetails, decode_usage, make_usage

_END_REASONS = {"max_output_tokens": "length", "content_filter": "refusal"}
_PART_SEPARATOR = "\n\n"


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
    usage: Raw = Raw()
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


_decode = msgspec.json.Decoder(_Event, strict=False).decode
_decode_response = msgspec.json.Decoder(_Response).decode


class ResponsesDecoder:
    """Decodes the events of one response."""

    def __init__(self) -> None:
        self._calls: dict[int, _OpenCall] = {}  # by the item's index
        self._text_item: int | None = None  # the last item with text

    def decode_event(self, payload: bytes, draft: ReplyDraft) -> None:
        """Decode an event. Unknown events, and events that only repeat earlier deltas, are ignored."""
        event = _decode(payload)
        match event.type:
            case "response.output_text.delta" if event.delta:
                self._add_text(event.output_index, event.delta, draft)
            case "response.function_call_arguments.delta" if event.delta:
                self._add_arguments(event.output_index, event.delta, draft)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" if event.delta:
                draft.chunks.append(ReasoningChunk(event.delta))
            case "response.reasoning_summary_part.added" if event.summary_index:
                draft.chunks.append(ReasoningChunk(_PART_SEPARATOR))
            case "response.refusal.delta" if event.delta:
                self._add_text(event.output_index, event.delta, draft)
                draft.is_refused = True
            case "response.output_item.added" if event.item is not None:
                self._open_item(event.output_index, event.item, draft)
            case "response.output_item.done" if event.item is not None:
                self._close_item(event.output_index, event.item, draft)
            case "response.completed" | "response.incomplete" | "response.failed" if event.response is not None:
                self._finish(event.response, draft)
            case "error":
                draft.error = parse_reply_error(event.error or {"code": event.code, "message": event.message})
            case _ if event.error:
                draft.error = parse_reply_error(event.error)
            case _:
                pass

    def decode_reply(self, payload: bytes, draft: ReplyDraft) -> None:
        """Decode a complete reply. Each item is opened and closed at once."""
        response = _decode_response(payload)
        for index, item in enumerate(response.output or ()):
            self._open_item(index, item, draft)
            self._decode_parts(index, item, draft)
            self._close_item(index, item, draft)
        if response.status or response.error:
            self._finish(response, draft)

    def _open_item(self, index: int, item: _Item, draft: ReplyDraft) -> None:
        if item.type == "function_call":
            self._calls[index] = _OpenCall(draft.open_call(item.call_id or item.id or "", item.name or ""))

    def _add_arguments(self, index: int, arguments: str, draft: ReplyDraft) -> None:
        if call := self._calls.get(index):
            call.has_arguments = True
            draft.chunks.append(CallChunk(call.index, arguments=arguments))

    def _close_item(self, index: int, item: _Item, draft: ReplyDraft) -> None:
        """Close an item. Reasoning is stored only if it is complete and has encrypted content."""
        if item.type == "function_call":
            if index not in self._calls:
                self._open_item(index, item, draft)
            if item.arguments and not self._calls[index].has_arguments:  # the server sent the arguments in one piece
                self._add_arguments(index, item.arguments, draft)
        if item.type == "reasoning" and item.id and item.encrypted_content and item.status != "incomplete":
            draft.chunks.append(ReasoningEnd(_to_reasoning(item)))

    def _add_text(self, index: int, text: str, draft: ReplyDraft) -> None:
        """Add text to the reply. Messages are separated by a blank line, because each is a separate document."""
        is_next_message = self._text_item not in (None, index)
        self._text_item = index
        draft.chunks.append(TextChunk(f"{_PART_SEPARATOR}{text}" if is_next_message else text))

    def _decode_parts(self, index: int, item: _Item, draft: ReplyDraft) -> None:
        for part in item.content or ():
            text = part.text or part.refusal
            if text and item.type == "reasoning":
                draft.chunks.append(ReasoningChunk(text))
            elif text:
                self._add_text(index, text, draft)
            draft.is_refused = draft.is_refused or bool(part.refusal)
        if item.summary:
            draft.chunks.append(ReasoningChunk(_join_summary(item)))

    def _finish(self, response: _Response, draft: ReplyDraft) -> None:
        if usage := decode_usage(response.usage, _Usage):
            draft.usage = make_usage(usage.input_tokens, usage.output_tokens, usage.input_tokens_details)
        if response.status == "failed" or response.error:
            draft.error = parse_reply_error(response.error)
            return
        reason = response.incomplete_details.reason if response.incomplete_details is not None else None
        draft.reason = _END_REASONS.get(reason or "", "length" if response.status == "incomplete" else "stop")
        draft.is_done = True


def _to_reasoning(item: _Item) -> Reasoning:
    stored = {"type": "reasoning", "id": item.id, "summary": item.summary or []}
    if item.content:
        stored["content"] = item.content
    stored["encrypted_content"] = item.encrypted_content
    return Reasoning(_join_summary(item), data=msgspec.json.encode(stored).decode())


def _join_summary(item: _Item) -> str:
    return _PART_SEPARATOR.join(part.text for part in item.summary or () if part.text)
