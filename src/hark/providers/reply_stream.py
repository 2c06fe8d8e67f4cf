"""A reply as it arrives: the body's events, folded into chunks by whoever knows the wire protocol."""

import aiohttp
import anyio

from hark.protocol.provider import AliveChunk, Chunk, ProviderError, TransientProviderError
from hark.providers.errors import bad_stream, http_error
from hark.providers.reply_fold import ReplyFold
from hark.providers.sse import EventTooLong, SseParser

NETWORK_ERRORS = (aiohttp.ClientError, OSError)
MAX_BODY_BYTES = 32 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024
ERROR_BODY_SECONDS = 5.0
TAIL_SECONDS = 5.0  # for what follows a complete reply, such as its usage
DRAIN_SECONDS = 0.1  # for the end of the body, so that the connection can be used again


class Body:
    """The bytes of one response. Cancelling a read leaves the cut to the owner of the response."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._tail_end: float | None = None

    async def read(self) -> bytes:
        """Return what has arrived, or b"" at the end.

        Raises:
            TransientProviderError: The connection broke.
        """
        try:
            return await self._response.content.readany()
        except NETWORK_ERRORS as error:
            raise TransientProviderError(
                f"the connection ended in the middle of the reply ({reason(error)})", code="stream_cut"
            ) from error

    async def read_tail(self) -> bytes:
        """Like `read` behind a complete reply: a broken connection, or a server that forgets to end, is an end."""
        if self._tail_end is None:
            self._tail_end = anyio.current_time() + TAIL_SECONDS
        with anyio.CancelScope(deadline=self._tail_end):
            try:
                return await self._response.content.readany()
            except NETWORK_ERRORS:
                return b""
        return b""

    async def read_rest(self, beginning: bytes) -> bytes:
        """Return the whole body, of which the beginning has been read."""
        pieces = [beginning]
        size = len(beginning)
        while data := await self.read():
            pieces.append(data)
            size += len(data)
            if size > MAX_BODY_BYTES:
                raise bad_stream("an endless reply")
        return b"".join(pieces)

    async def drain(self) -> None:
        """Read to the end if it is near: only then can the connection serve another request."""
        with anyio.move_on_after(DRAIN_SECONDS):
            try:
                while await self._response.content.readany():
                    pass
            except NETWORK_ERRORS:
                return  # the reply is whole; only its connection is lost

    async def refusal(self) -> ProviderError:
        """Return what an error status means, with as much of the reason as comes in time."""
        response = self._response
        body = b""
        with anyio.move_on_after(ERROR_BODY_SECONDS):
            try:
                while len(body) < MAX_ERROR_BYTES and (data := await response.content.readany()):
                    body += data
            except NETWORK_ERRORS:
                pass  # the status alone must tell
        words = body.decode(errors="replace")
        if 300 <= response.status < 400:
            words = f"it points to {response.headers.get('Location', 'another address')}"
        return http_error(response.status, words, response.headers.get("Retry-After", ""))


def reason(error: Exception) -> str:
    """Return what a network error says of itself."""
    return str(error) or type(error).__name__


ALIVE = AliveChunk()


class ReplyStream:
    """The chunks of one response, in batches: all that arrived together."""

    def __init__(self, response: aiohttp.ClientResponse, fold: ReplyFold) -> None:
        self._body = Body(response)
        self._fold = fold
        self._events = SseParser()
        self._is_at_start = True
        self._is_at_end = False
        self._is_over = False

    async def next(self) -> list[Chunk]:
        """Return the next chunks; none when all have been given.

        Raises:
            TransientProviderError, ProviderError: See `Provider.stream`; all chunks before have been given.
        """
        fold = self._fold
        while not self._is_over:
            if fold.draft.error is not None:
                raise fold.draft.error
            if fold.draft.is_done or self._is_at_end:
                self._is_over = True
                await self._body.drain()
                return fold.end()
            data = await (self._body.read_tail() if fold.is_complete else self._body.read())
            if chunks := await self._begin(data) if self._is_at_start else self._take(data):
                return chunks
            if data:
                return [ALIVE]  # a comment, a ping, a piece of an event
        return []

    async def _begin(self, data: bytes) -> list[Chunk]:
        self._is_at_start = False
        first = data.lstrip()[:1]
        if first == b"<":
            raise ProviderError("The model server answered with a web page: check the base URL.", code="bad_url")
        if first == b"{":  # not a stream: it was not asked for one, or has none
            return self._fold.take_whole(await self._body.read_rest(data))
        return self._take(data)

    def _take(self, data: bytes) -> list[Chunk]:
        if not data:
            self._is_at_end = True
            return self._fold.take_rest(self._events.finish())
        try:
            return self._fold.take(self._events.feed(data))
        except EventTooLong as error:
            raise bad_stream("an endless event") from error
