"""A model behind an HTTP API: a request is posted, its reply comes back as chunks."""

import asyncio
import io
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from traceback import clear_frames

import aiohttp

from hark.protocol.provider import (
    BadAddress,
    Chunk,
    ProviderError,
    Request,
    TextChunk,
    TransientProviderError,
    Unreachable,
)
from hark.providers.endpoint import Endpoint
from hark.providers.reply_fold import Dialect, ReplyFold
from hark.providers.reply_stream import NETWORK_ERRORS, Body, ReplyStream, reason
from hark.text.redaction import redacted

FREE_STREAMS = 300  # so many are read as their tokens come
READS_A_SECOND = 2_500  # of the others; what comes between two reads is taken together
LEAST_SECONDS = 0.04
LONGEST_SECONDS = 0.8
TICK_SECONDS = 0.005


class ReadThrottle:
    """How long a stream rests between two reads. A token is then late by that much, and costs a fraction."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._streams = 0
        self._resting: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._is_ticking = False

    @contextmanager
    def stream(self) -> Generator[None]:
        """Count a stream for as long as it lasts."""
        self._change(1)
        try:
            yield
        finally:
            self._change(-1)

    async def rest(self) -> None:
        """Return when it is this stream's turn to be read. One timer serves all: thousands of them would cost more."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._resting.append((loop.time() + self.seconds, turn))
        if not self._is_ticking:
            self._is_ticking = True
            loop.call_later(TICK_SECONDS, self._tick, loop)
        await turn

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wake one stream, then let everyone else have a turn: those that began together would hold all others up."""
        while self._resting and self._resting[0][1].done():  # a stop came
            self._resting.popleft()
        self._is_ticking = bool(self._resting)
        if not self._resting:
            return
        if self._resting[0][0] > loop.time():
            loop.call_later(TICK_SECONDS, self._tick, loop)
            return
        _, turn = self._resting.popleft()
        turn.set_result(None)
        loop.call_soon(self._tick, loop)

    def _change(self, count: int) -> None:
        self._streams += count
        seconds = (self._streams - FREE_STREAMS) / READS_A_SECOND
        self.seconds = min(seconds, LONGEST_SECONDS) if seconds >= LEAST_SECONDS else 0.0


def joined(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks with neighbouring texts put together: what was read together is told together."""
    together: list[Chunk] = []
    texts: list[str] = []
    for chunk in chunks:
        if type(chunk) is TextChunk:
            texts.append(chunk.text)
            continue
        if texts:
            together.append(TextChunk("".join(texts)))
            texts.clear()
        together.append(chunk)
    if texts:
        together.append(TextChunk("".join(texts)))
    return together


class HttpProvider:
    """One path of an endpoint, over a session from `open_session`; `headers` go with every request.

    `encode` makes the body of a request, and a new `dialect` reads each reply.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        endpoint: Endpoint,
        path: str,
        headers: Mapping[str, str],
        encode: Callable[[Request, Endpoint], bytes],
        dialect: Callable[[], Dialect],
    ) -> None:
        self._encode = encode
        self._dialect = dialect
        self._session = session
        self._endpoint = endpoint
        self._url = endpoint.base_url.rstrip("/") + path
        usual = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._headers = {**usual, **endpoint.extra_headers, **headers}
        self._pace = ReadThrottle()

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Yield the reply's chunks; see `Provider.stream`. The key is in no error, even if the server repeats it."""
        return self._stream(self._encode(request, self._endpoint), ReplyFold(self._dialect()))

    async def _stream(self, body: bytes, fold: ReplyFold) -> AsyncGenerator[Chunk, None]:
        try:
            response = await self._post(body)
            del body  # a long one must not stay as long as the reply takes
            try:
                if response.status >= 300:
                    raise await Body(response).refusal()
                reply = ReplyStream(response, fold)
                with self._pace.stream():
                    while chunks := await reply.next():
                        for chunk in joined(chunks) if self._pace.seconds else chunks:
                            yield chunk
                        if self._pace.seconds and not fold.is_complete:
                            await self._rest(response)
            finally:
                response.close()
        except ProviderError as error:
            error.args = (redacted(str(error), self._endpoint.secrets),)
            raise

    async def _rest(self, response: aiohttp.ClientResponse) -> None:
        """Leave what comes to the kernel for a moment: one read brings it all."""
        connection = response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.pause_reading()
            await self._pace.rest()
            connection.transport.resume_reading()

    async def _post(self, body: bytes) -> aiohttp.ClientResponse:
        where = self._endpoint.base_url.rpartition("@")[2]  # a password may stand before the @
        try:
            # As a file, because aiohttp warns of large bytes, and one picture is enough for that.
            data = io.BytesIO(body)
            return await self._session.post(self._url, data=data, headers=self._headers, allow_redirects=False)
        except aiohttp.ClientConnectorCertificateError as error:
            text = f"The certificate of {where} can't be trusted: {reason(error)}"
            raise BadAddress(text, code="bad_certificate") from error
        except aiohttp.ClientConnectorError as error:
            # What connecting left in its frames holds itself, and our whole request, until garbage is collected.
            clear_frames(error.__traceback__)
            clear_frames(error.os_error.__traceback__)
            raise Unreachable(f"No answer from {where}: {reason(error)}") from error
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
            pass
        except NETWORK_ERRORS as error:
            raise TransientProviderError(f"No answer from {where}: {reason(error)}") from error
        except ValueError:
            pass
        # Without a cause: what aiohttp says here may hold the header or the password that it could not use.
        raise BadAddress(f"Nothing can be sent to {where}: check the base URL, key and headers.")


def bearer(endpoint: Endpoint) -> dict[str, str]:
    """Return the header that most servers want the key in; none without a key."""
    return {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
