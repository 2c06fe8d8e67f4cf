"""Decodes the events of a chat completion."""

from typing import Any

import msgspec
from msgspec import Struct

from hark.protocol.provider import CallChunk, ReasoningChunk, TextChunk, TransientProviderError
from hark.providers.errors import parse_reply_error
from hark.providers.reply_parser import ReplyDraft, TokenDetails, make_usage

_END_REASONS = {"length": "length", "max_tokens": "length", "content_filter": "refusal"}
_ERROR_REASONS = frozenset({"error", "insufficient_system_resource"})


class _Function(Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct, gc=False):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Usage(Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: TokenDetails | None = None


class _Event(Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


class _OpenCall(Struct):
    index: int
    wire_id: str


_decode = msgspec.json.Decoder(_Event).decode


class ChatDecoder:
    """Decodes the events of one chat completion."""

    def __init__(self) -> None:
        self._calls: dict[int, _OpenCall] = {}  # by the server's index
        self._last_call = 0

    def decode_event(self, payload: bytes, draft: ReplyDraft) -> None:
        """Decode an event, or the [DONE] marker after the last event."""
        try:
            event = _decode(payload)
        except msgspec.DecodeError:
            if payload.strip() != b"[DONE]":
                raise
            draft.is_done = True
            return
        if event.choices:
            self._decode_choice(event.choices[0], draft)
        if event.usage is not None:
            usage = event.usage
            draft.usage = make_usage(usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details)
        if event.error:
            draft.error = parse_reply_error(event.error)

    def decode_reply(self, payload: bytes, draft: ReplyDraft) -> None:
        """Decode a complete reply, which has the same structure as an event."""
        self.decode_event(payload, draft)

    def _decode_choice(self, choice: _Choice, draft: ReplyDraft) -> None:
        delta = choice.delta or choice.message
        if delta is not None:
            if reasoning := delta.reasoning_content or delta.reasoning:
                draft.chunks.append(ReasoningChunk(reasoning))
            if delta.content:
                draft.chunks.append(TextChunk(delta.content))
            if delta.refusal:
                draft.chunks.append(TextChunk(delta.refusal))
                draft.is_refused = True
            if delta.tool_calls:
                for call in delta.tool_calls:
                    self._decode_call(call, draft)
        if choice.finish_reason:
            draft.reason = _END_REASONS.get(choice.finish_reason, "stop")
            if choice.finish_reason in _ERROR_REASONS:
                draft.error = TransientProviderError("The model server aborted the reply.", code="server_error")

    def _decode_call(self, call: _Call, draft: ReplyDraft) -> None:
        name, arguments = "", ""
        if call.function is not None:
            name, arguments = call.function.name or "", _arguments_as_text(call.function.arguments)
        key = self._last_call if call.index is None else call.index
        open_call = self._calls.get(key)
        if open_call is not None and not _is_new_call(call, open_call, name):
            if arguments:
                draft.chunks.append(CallChunk(open_call.index, arguments=arguments))
            return
        if open_call is not None and call.index is None:
            key = max(self._calls) + 1
        wire_id = call.id or ""
        self._calls[key] = _OpenCall(draft.open_call(wire_id, name, arguments), wire_id)
        self._last_call = key


def _is_new_call(call: _Call, open_call: _OpenCall, name: str) -> bool:
    """Return whether a delta starts a new call.

    Some servers number all calls 0, or don't number them. Then a different id, or a second name without an id, starts
    a new call.
    """
    if not name:
        return False
    return call.id != open_call.wire_id if call.id else call.index is None


def _arguments_as_text(arguments: str | dict[str, Any] | None) -> str:
    if isinstance(arguments, dict):
        return msgspec.json.encode(arguments).decode()
    return arguments or ""
