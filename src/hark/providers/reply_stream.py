"""Reads a reply as it arrives, and returns its chunks in batches."""

import aiohttp
import anyio

from hark.protocol.provider import Chunk, KeepAliveChunk, ProviderError, TransientProviderError
from hark.providers.errors import make_bad_stream_error, parse_http_error
from hark.providers.reply_parser import ReplyParser
from hark.providers.sse import EventTooLong, SseParser

NETWORK_ERRORS = (aiohttp.ClientError, OSError)
MAX_BODY_BYTES = 32 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024
ERROR_BODY_SECONDS = 1.0  # the status is reported even if its reason is late
TAIL_SECONDS = 5.0  # for events after a complete reply, such as its usage
DRAIN_SECONDS = 0.1  # for the end of the body, so that the connection can be reused


class ResponseBody:
    """The body of one response. After a cancelled read, the owner of the response closes the connection."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._tail_deadline: float | None = None

    async def read(self) -> bytes:
        """Return the bytes that have arrived, or b"" at the end.

        Raises:
            TransientProviderError: The connection was lost.
        """
        try:
            return await self._response.content.readany()
        except NETWORK_ERRORS as error:
            raise TransientProviderError(
                f"The connection was lost in the middle of the reply ({describe_network_error(error)})",
                code="stream_cut",
            ) from error

    async def read_tail(self) -> bytes:
        """Like `read`, but after a complete reply. A lost connection or a silent server counts as the end."""
        if self._tail_deadline is None:
            self._tail_deadline = anyio.current_time() + TAIL_SECONDS
        with anyio.CancelScope(deadline=self._tail_deadline):
            try:
                return await self._response.content.readany()
            except NETWORK_ERRORS:
                return b""
        return b""

    async def read_remaining(self, first_bytes: bytes) -> bytes:
        """Return the whole body, whose first bytes were already read."""
        pieces = [first_bytes]
        size = len(first_bytes)
        while data := await self.read():
            pieces.append(data)
            size += len(data)
            if size > MAX_BODY_BYTES:
                raise make_bad_stream_error("a reply that is too long")
        return b"".join(pieces)

    async def drain(self) -> None:
        """Read the rest of the body if it arrives soon, because otherwise the connection can't be reused."""
        with anyio.move_on_after(DRAIN_SECONDS):
            try:
                while await self._response.content.readany():
                    pass
            except NETWORK_ERRORS:
                return  # the reply is complete; only its connection is lost

    async def read_error(self) -> ProviderError:
        """Return the error for an error response, with as much of the body as arrives in time."""
        response = self._response
        body = b""
        with anyio.move_on_after(ERROR_BODY_SECONDS):
            try:
                while len(body) < MAX_ERROR_BYTES and (data := await response.content.readany()):
                    body += data
            except NETWORK_ERRORS:
                pass  # the status alone must be enough
        reason = body.decode(errors="replace")
        if 300 <= response.status < 400:
            reason = f"it redirects to {response.headers.get('Location', 'another URL')}"
        return parse_http_error(response.status, reason, response.headers.get("Retry-After", ""))


def describe_network_error(error: Exception) -> str:
    """Return the message of a network error, or the name of its class if the message is empty."""
    return str(error) or type(error).__name__


ALIVE = KeepAliveChunk()


class ReplyStream:
    """The chunks of one response, in batches that arrived together."""

    def __init__(self, response: aiohttp.ClientResponse, parser: ReplyParser) -> None:
        self._body = ResponseBody(response)
        self._parser = parser
        self._events = SseParser()
        self._is_at_start = True
        self._is_at_end = False
        self._is_finished = False

    async def next_batch(self) -> list[Chunk]:
        """Return the next chunks, or an empty list after the last.

        Raises:
            TransientProviderError, ProviderError: See `Provider.stream`. All earlier chunks were returned.
        """
        parser = self._parser
        while not self._is_finished:
            if parser.draft.error is not None:
                raise parser.draft.error
            if parser.draft.is_done or self._is_at_end:
                self._is_finished = True
                await self._body.drain()
                return parser.finish()
            data = await (self._body.read_tail() if parser.is_complete else self._body.read())
            if chunks := await self._parse_first(data) if self._is_at_start else self._parse(data):
                return chunks
            if data:
                return [ALIVE]  # a comment, a ping, or part of an event
        return []

    async def _parse_first(self, data: bytes) -> list[Chunk]:
        first = data.lstrip()[:1]
        self._is_at_start = bool(data) and not first  # blank lines keep the connection alive before a JSON reply
        if first == b"<":
            raise ProviderError("The model server answered with a web page. Check the base URL.", code="bad_url")
        if first == b"{":  # the server does not stream, or was not asked to
            return self._parser.parse_reply(await self._body.read_remaining(data))
        return self._parse(data)

    def _parse(self, data: bytes) -> list[Chunk]:
        if not data:
            self._is_at_end = True
            return self._parser.parse_last_events(self._events.finish())
        try:
            return self._parser.parse_events(self._events.feed(data))
        except EventTooLong as error:
            raise make_bad_stream_error("an event that is too long") from error
