"""A reply's events, folded into chunks: what all wire protocols have in common."""

import secrets
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec
from msgspec import Struct

from hark.protocol.outcomes import Usage
from hark.protocol.provider import CallChunk, Chunk, EndChunk, ProviderError, TransientProviderError, UsageChunk
from hark.providers.errors import bad_stream, server_words
from hark.providers.request_parts import repaired

_UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)


class TokenDetails(Struct, gc=False):
    """How many of a request's tokens were cached."""

    cached_tokens: int | None = None


class ReplyDraft:
    """A reply so far.

    `reason` is set when all text and calls are there, `is_done` when nothing more follows, `error` when it can't go on.
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
        """Begin a call and return its index. Some servers leave its id out, or give it twice: then it gets its own."""
        if not name:
            self.error = bad_stream("a tool call without a name")
        index = len(self._call_ids)
        is_free = wire_id and wire_id not in self._call_ids
        call_id = wire_id if is_free else f"call_{secrets.token_hex(6)}"
        self._call_ids.add(call_id)
        if name:
            self.chunks.append(CallChunk(index, call_id, name, arguments))
        return index

    def last_chunks(self) -> list[Chunk]:
        """Return what ends the reply. Calls are the reason of a plain stop, whatever the server calls it."""
        reason = "refusal" if self.is_refused else self.reason or "stop"
        end = EndChunk("calls" if reason == "stop" and self._call_ids else reason)
        return [end] if self.usage is None else [UsageChunk(self.usage), end]


class Dialect(Protocol):
    """Knows the events of one wire protocol; made anew for each reply. It raises what msgspec raises."""

    def take(self, payload: bytes, draft: ReplyDraft) -> None:
        """Put an event's meaning into the draft."""
        ...

    def take_whole(self, payload: bytes, draft: ReplyDraft) -> None:
        """Put a whole reply into the draft, or an error that came in its place."""
        ...


class ReplyFold:
    """One reply: events go in, chunks come out."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.draft = ReplyDraft()

    @property
    def is_complete(self) -> bool:
        """Whether all text and calls are there, though more may follow, such as the usage."""
        return bool(self.draft.reason)

    def take(self, payloads: Iterable[bytes]) -> list[Chunk]:
        """Return the chunks in these events, up to the end or the first that is broken."""
        draft, take = self.draft, self._dialect.take
        chunks = draft.chunks = []
        for payload in payloads:
            try:
                take(payload, draft)
            except _UNREADABLE:
                self._take_broken(take, payload, "something that is not JSON in the middle of the reply")
            if draft.is_done or draft.error is not None:
                break
        return chunks

    def take_rest(self, payloads: Iterable[bytes]) -> list[Chunk]:
        """Like `take`, for an event that the end of the stream cut: half of one is no error of its own."""
        chunks = self.take(payloads)
        draft = self.draft
        if draft.error is not None and draft.error.code == "bad_stream":
            draft.error = None
        return chunks

    def take_whole(self, body: bytes) -> list[Chunk]:
        """Return the chunks of a reply that came in one piece."""
        draft = self.draft
        draft.chunks = []
        try:
            self._dialect.take_whole(body, draft)
        except _UNREADABLE:
            self._take_broken(self._dialect.take_whole, body, "a reply that is not JSON")
        if draft.error is None and not draft.chunks and not draft.reason:
            words = server_words(body.decode(errors="replace"))
            draft.error = ProviderError(f"The model server answered with no reply in it: {words}", code="bad_reply")
        draft.is_done = True
        return draft.chunks

    def end(self) -> list[Chunk]:
        """Return the last chunks.

        Raises:
            TransientProviderError: The stream was cut before the reply was complete.
        """
        draft = self.draft
        if not draft.is_done and not draft.reason:
            raise TransientProviderError("the connection ended in the middle of the reply", code="stream_cut")
        return draft.last_chunks()

    def _take_broken(self, take: Callable[[bytes, ReplyDraft], None], payload: bytes, what: str) -> None:
        """Take what can't be read as it is, if only its characters are broken."""
        try:
            take(repaired(payload), self.draft)
        except (*_UNREADABLE, ValueError):
            self.draft.error = bad_stream(what)


def usage_of(input_tokens: int | None, output_tokens: int | None, details: TokenDetails | None) -> Usage:
    """Return a reply's usage as OpenAI's APIs count it."""
    cached = details.cached_tokens if details is not None else None
    return Usage(input_tokens or 0, output_tokens or 0, cached or 0)
