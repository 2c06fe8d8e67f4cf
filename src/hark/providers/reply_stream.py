"""A reply as it arrives: the body's events, folded into chunks by whoever knows the wire protocol."""

import aiohttp

from hark.protocol.provider import AliveChunk, Chunk, ProviderError
from hark.providers.errors import bad_stream
from hark.providers.reply_fold import ReplyFold
from hark.providers.response_body import Body
from hark.providers.sse import EventTooLong, SseParser

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
            if fold.error is not None:
                raise fold.error
            if fold.is_done or self._is_at_end:
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
