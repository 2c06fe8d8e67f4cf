"""Parses the events of a reply into chunks, independent of the wire protocol."""

import secrets
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct

from hark.protocol.outcomes import Usage
from hark.protocol.provider import CallChunk, Chunk, EndChunk, ProviderError, TransientProviderError, UsageChunk
from hark.providers.errors import extract_reason, make_bad_stream_error
from hark.providers.request_parts import repair_json

_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeError, RecursionError)
_NULL = Raw(b"null")
T = TypeVar("T")


class TokenDetails(Struct, gc=False):
    """The number of cached tokens in a request."""

    cached_tokens: int | None = None


class ReplyDraft:
    """The reply so far.

    `reason` is set when text and calls are complete, `is_done` when no more events follow, and `error` when the reply
    can't continue.
    """

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.reason = ""
        self.is_done = False
        self.is_refused = False
        self.error: ProviderError | None = None
        self.usage: Usage | None = None
        self._call_ids: set[str] = set()

    def open_call(self, wire_id: str, name: str, arguments: str = "") -> int:
        """Start a call and return its index. A missing or repeated id is replaced by a new one."""
        if not name:
            self.error = make_bad_stream_error("a tool call without a name")
        index = len(self._call_ids)
        is_free = wire_id and wire_id not in self._call_ids
        call_id = wire_id if is_free else f"call_{secrets.token_hex(6)}"
        self._call_ids.add(call_id)
        if name:
            self.chunks.append(CallChunk(index, call_id, name, arguments))
        return index

    def final_chunks(self) -> list[Chunk]:
        """Return the chunks that end the reply. If the reply has calls, the reason `stop` becomes `calls`."""
        reason = "refusal" if self.is_refused else self.reason or "stop"
        end = EndChunk("calls" if reason == "stop" and self._call_ids else reason)
        return [end] if self.usage is None else [UsageChunk(self.usage), end]


class ReplyDecoder(Protocol):
    """Decodes the events of one wire protocol. Each reply gets a new decoder. Methods raise msgspec's errors."""

    def decode_event(self, payload: bytes, draft: ReplyDraft) -> None:
        """Add the content of an event to the draft."""
        ...

    def decode_reply(self, payload: bytes, draft: ReplyDraft) -> None:
        """Add a complete reply, or the error that was sent instead, to the draft."""
        ...


class ReplyParser:
    """Parses the events of one reply into chunks."""

    def __init__(self, decoder: ReplyDecoder) -> None:
        self._decoder = decoder
        self.draft = ReplyDraft()

    @property
    def is_complete(self) -> bool:
        """Whether text and calls are complete. More events may follow, such as the usage."""
        return bool(self.draft.reason)

    def parse_events(self, payloads: Iterable[bytes]) -> list[Chunk]:
        """Return the chunks of these events, up to the end or the first invalid event."""
        draft, decode = self.draft, self._decoder.decode_event
        chunks = draft.chunks = []
        for payload in payloads:
            try:
                decode(payload, draft)
            except _DECODE_ERRORS:
                self._parse_repaired(decode, payload, "invalid JSON in the middle of the reply")
            if draft.is_done or draft.error is not None:
                break
        return chunks

    def parse_last_events(self, payloads: Iterable[bytes]) -> list[Chunk]:
        """Like `parse_events`, but at the end of the stream, where a truncated last event is ignored."""
        chunks = self.parse_events(payloads)
        draft = self.draft
        if draft.error is not None and draft.error.code == "bad_stream":
            draft.error = None
        return chunks

    def parse_reply(self, body: bytes) -> list[Chunk]:
        """Return the chunks of a reply that was sent in one piece."""
        draft = self.draft
        draft.chunks = []
        try:
            self._decoder.decode_reply(body, draft)
        except _DECODE_ERRORS:
            self._parse_repaired(self._decoder.decode_reply, body, "a reply that is not JSON")
        if draft.error is None and not draft.chunks and not draft.reason:
            reason = extract_reason(body.decode(errors="replace"))
            draft.error = ProviderError(f"The model server's answer contains no reply: {reason}", code="bad_reply")
        draft.is_done = True
        return draft.chunks

    def finish(self) -> list[Chunk]:
        """Return the last chunks.

        Raises:
            TransientProviderError: The stream ended before the reply was complete.
        """
        draft = self.draft
        if not draft.is_done and not draft.reason:
            raise TransientProviderError("The connection was lost in the middle of the reply", code="stream_cut")
        return draft.final_chunks()

    def _parse_repaired(self, decode: Callable[[bytes, ReplyDraft], None], payload: bytes, content: str) -> None:
        """Decode a payload again with its invalid characters replaced. If that fails, set the draft's error."""
        try:
            decode(repair_json(payload), self.draft)
        except (*_DECODE_ERRORS, ValueError):
            self.draft.error = make_bad_stream_error(content)


def decode_usage(payload: Raw, counts: type[T]) -> T | None:
    """Return a reply's token counts, or None if they are missing or invalid: no reply fails because of its counts."""
    try:
        return msgspec.json.decode(payload, type=counts, strict=False) if payload and payload != _NULL else None
    except _DECODE_ERRORS:
        return None


def make_usage(input_tokens: int | None, output_tokens: int | None, details: TokenDetails | None) -> Usage:
    """Return a reply's usage from the counts of OpenAI's APIs."""
    cached = details.cached_tokens if details is not None else None
    return Usage(input_tokens or 0, output_tokens or 0, cached or 0)
