"""A chat completion's events, folded into chunks."""

import secrets
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from hark.protocol.outcomes import Usage
from hark.protocol.provider import (
    CallChunk,
    Chunk,
    EndChunk,
    ProviderError,
    ReasoningChunk,
    TextChunk,
    TransientProviderError,
    UsageChunk,
)
from hark.providers.errors import bad_stream, reply_error, server_words

_REASONS = {"length": "length", "max_tokens": "length", "content_filter": "refusal"}
_BROKEN_REASONS = frozenset({"error", "insufficient_system_resource"})
_UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)


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


class _PromptDetails(Struct, gc=False):
    cached_tokens: int | None = None


class _Usage(Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Event(Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


class _OpenCall(Struct):
    index: int
    wire_id: str


_decode = msgspec.json.Decoder(_Event).decode


class ReplyFold:
    """One reply. `is_done` when the server said that it is over, `error` when what came can't be a reply."""

    def __init__(self) -> None:
        self.is_done = False
        self.error: ProviderError | None = None
        self._reason = ""
        self._is_refused = False
        self._usage: Usage | None = None
        self._calls: dict[int, _OpenCall] = {}  # by the server's index
        self._last_call = 0
        self._ids: set[str] = set()

    @property
    def is_complete(self) -> bool:
        """Whether all text and calls are there, though the usage may follow."""
        return bool(self._reason)

    def take(self, payloads: Iterable[bytes]) -> list[Chunk]:
        """Return the chunks in these events, up to the end or the first that is broken."""
        chunks: list[Chunk] = []
        for payload in payloads:
            try:
                event = _decode(payload)
            except _UNREADABLE:
                if payload.strip() == b"[DONE]":
                    self.is_done = True
                else:
                    self.error = bad_stream("something that is not JSON in the middle of the reply")
                break
            choices = event.choices
            if choices:
                self._take_choice(choices[0], chunks)
            if event.usage is not None:
                self._usage = _usage(event.usage)
            if event.error:
                self.error = reply_error(event.error)
            if self.error is not None:
                break
        return chunks

    def take_rest(self, payloads: Iterable[bytes]) -> list[Chunk]:
        """Like `take`, for an event that the end of the stream cut: half of one is no error of its own."""
        chunks = self.take(payloads)
        if self.error is not None and self.error.code == "bad_stream":
            self.error = None
        return chunks

    def take_whole(self, body: bytes) -> list[Chunk]:
        """Return the chunks of a reply that came in one piece."""
        chunks = self.take([body])
        if self.error is None and not chunks and not self._reason:
            words = server_words(body.decode(errors="replace"))
            self.error = ProviderError(f"The model server answered with no reply in it: {words}", code="bad_reply")
        self.is_done = True
        return chunks

    def end(self) -> list[Chunk]:
        """Return the last chunks.

        Raises:
            TransientProviderError: The stream was cut before the reply was complete.
        """
        if not self.is_done and not self._reason:
            raise TransientProviderError("the connection ended in the middle of the reply", code="stream_cut")
        reason = "refusal" if self._is_refused else _REASONS.get(self._reason)
        end = EndChunk(reason or ("calls" if self._ids else "stop"))
        return [end] if self._usage is None else [UsageChunk(self._usage), end]

    def _take_choice(self, choice: _Choice, chunks: list[Chunk]) -> None:
        delta = choice.delta or choice.message
        if delta is not None:
            if thought := delta.reasoning_content or delta.reasoning:
                chunks.append(ReasoningChunk(thought))
            if delta.content:
                chunks.append(TextChunk(delta.content))
            if delta.refusal:
                chunks.append(TextChunk(delta.refusal))
                self._is_refused = True
            if delta.tool_calls:
                for call in delta.tool_calls:
                    self._take_call(call, chunks)
        if choice.finish_reason:
            self._reason = choice.finish_reason
            if choice.finish_reason in _BROKEN_REASONS:
                self.error = TransientProviderError("The model server gave the reply up.", code="server_error")

    def _take_call(self, call: _Call, chunks: list[Chunk]) -> None:
        name, arguments = "", ""
        if call.function is not None:
            name, arguments = call.function.name or "", _arguments(call.function.arguments)
        wire_id = call.id or ""
        key = self._last_call if call.index is None else call.index
        known = self._calls.get(key)
        if known is not None and not _is_another(call, known, name):
            if arguments:
                chunks.append(CallChunk(known.index, arguments=arguments))
            return
        if not name:
            self.error = bad_stream("a tool call without a name")
            return
        if known is not None and call.index is None:
            key = max(self._calls) + 1
        opened = _OpenCall(len(self._ids), wire_id)
        self._calls[key] = opened
        self._last_call = key
        # Some servers leave the id out, or give all calls of a reply the same.
        call_id = wire_id if wire_id and wire_id not in self._ids else f"call_{secrets.token_hex(6)}"
        self._ids.add(call_id)
        chunks.append(CallChunk(opened.index, call_id, name, arguments))


def _is_another(call: _Call, known: _OpenCall, name: str) -> bool:
    """Some servers number all calls 0 or not at all: then another id, or a second name without one, is another call."""
    if not name:
        return False
    return call.id != known.wire_id if call.id else call.index is None


def _arguments(arguments: str | dict[str, Any] | None) -> str:
    if isinstance(arguments, dict):
        return msgspec.json.encode(arguments).decode()
    return arguments or ""


def _usage(usage: _Usage) -> Usage:
    details = usage.prompt_tokens_details
    cached = details.cached_tokens if details is not None else None
    return Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0, cached or 0)
