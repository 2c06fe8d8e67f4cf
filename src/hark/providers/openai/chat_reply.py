"""Decodes the events of a chat completion."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from hark.protocol.provider import CallChunk, ReasoningChunk, TextChunk, TransientProviderError
from hark.providers.errors import make_bad_stream_error, parse_reply_error
from hark.providers.reply_parser import ReplyDraft, TokenDetails, decode_usage, make_usage

_END_REASONS = {"length": "length", "max_tokens": "length", "content_filter": "refusal"}
_ERROR_REASONS = frozenset({"error", "insufficient_system_resource"})


class _Function(Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(Struct, gc=False):
    index: int | float | str | None = None
    id: str | None = None
    function: _Function | None = None


class _Part(Struct, gc=False):
    """A part of the content, as Mistral's reasoning models send it."""

    text: str | None = None
    thinking: "list[_Part] | str | None" = None


class _Delta(Struct, gc=False):
    content: str | list[_Part] | None = None
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
    usage: Raw = Raw()
    error: Any = None


class _OpenCall(Struct):
    """A call that has begun. It has no index before its name arrives, which may be after its id and arguments."""

    wire_id: str = ""
    index: int | None = None
    early_arguments: list[str] = []


_decode = msgspec.json.Decoder(_Event).decode


class ChatDecoder:
    """Decodes the events of one chat completion."""

    def __init__(self) -> None:
        self._calls: dict[float | str, _OpenCall] = {}  # by the server's index
        self._last_call: float | str = 0

    def decode_event(self, payload: bytes, draft: ReplyDraft) -> None:
        """Decode an event, or the [DONE] marker after the last event."""
        try:
            event = _decode(payload)
        except msgspec.DecodeError:
            if payload.strip() != b"[DONE]":
                raise
            draft.is_done = True
            self._check_names(draft)
            return
        if event.choices:
            self._decode_choice(event.choices[0], draft)
        if usage := decode_usage(event.usage, _Usage):
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
                _add_content(delta.content, draft)
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
            self._check_names(draft)

    def _decode_call(self, call: _Call, draft: ReplyDraft) -> None:
        name, arguments = "", ""
        if call.function is not None:
            name, arguments = call.function.name or "", _arguments_as_text(call.function.arguments)
        key = self._last_call if call.index is None else _parse_index(call.index)
        open_call = self._calls.get(key)
        if open_call is None or _is_new_call(call, open_call, name):
            if open_call is not None and call.index is None:
                key = f"call {len(self._calls)}"
            open_call = self._calls[key] = _OpenCall()
            self._last_call = key
        open_call.wire_id = open_call.wire_id or call.id or ""
        if open_call.index is not None:
            if arguments:
                draft.chunks.append(CallChunk(open_call.index, arguments=arguments))
            return
        open_call.early_arguments.append(arguments)
        if name:
            open_call.index = draft.open_call(open_call.wire_id, name, "".join(open_call.early_arguments))

    def _check_names(self, draft: ReplyDraft) -> None:
        """Set the draft's error if a call has no name at the end of the reply."""
        if draft.error is None and any(call.index is None for call in self._calls.values()):
            draft.error = make_bad_stream_error("a tool call without a name")


def _is_new_call(call: _Call, open_call: _OpenCall, name: str) -> bool:
    """Return whether a delta starts a new call.

    Some servers number all calls 0, or don't number them. Then a different id, or a second name without an id, starts
    a new call.
    """
    if not name:
        return False
    if call.id and (open_call.wire_id or open_call.index is not None):
        return call.id != open_call.wire_id
    return call.index is None and open_call.index is not None


def _parse_index(index: float | str) -> float | str:
    return int(index) if isinstance(index, str) and index.isdecimal() else index


def _add_content(content: str | list[_Part], draft: ReplyDraft, *, is_reasoning: bool = False) -> None:
    if isinstance(content, str):
        draft.chunks.append(ReasoningChunk(content) if is_reasoning else TextChunk(content))
        return
    for part in content:
        if part.thinking:
            _add_content(part.thinking, draft, is_reasoning=True)
        if part.text:
            _add_content(part.text, draft, is_reasoning=is_reasoning)


def _arguments_as_text(arguments: str | dict[str, Any] | None) -> str:
    if isinstance(arguments, dict):
        return msgspec.json.encode(arguments).decode()
    return arguments or ""
