"""The base of providers for HTTP APIs: posts a request and yields the chunks of the reply."""

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
from hark.providers.reply_parser import ReplyDecoder, ReplyParser
from hark.providers.reply_stream import NETWORK_ERRORS, ReplyStream, ResponseBody, describe_network_error
from hark.text.redaction import redact_secrets

UNTHROTTLED_STREAMS = 300  # up to this number of streams, each token is read as it arrives
READS_PER_SECOND = 2_500  # for all streams above that number; tokens that arrive between two reads are read together
MIN_PAUSE_SECONDS = 0.04
MAX_PAUSE_SECONDS = 0.8
TICK_SECONDS = 0.005
PROBE_SECONDS = 10.0
TOO_MANY_REQUESTS = 429


class ReadThrottle:
    """Computes the pause between two reads of a stream. Batching tokens delays them a little but costs far less CPU."""

    def __init__(self) -> None:
        self.pause_seconds = 0.0
        self._streams = 0
        self._waiting: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._is_ticking = False

    @contextmanager
    def count_stream(self) -> Generator[None]:
        """Count a stream while the context is open."""
        self._change_count(1)
        try:
            yield
        finally:
            self._change_count(-1)

    async def wait(self) -> None:
        """Wait until this stream may be read. All streams share one timer, because many timers would cost more."""
        loop = asyncio.get_running_loop()
        wakeup: asyncio.Future[None] = loop.create_future()
        self._waiting.append((loop.time() + self.pause_seconds, wakeup))
        if not self._is_ticking:
            self._is_ticking = True
            loop.call_later(TICK_SECONDS, self._tick, loop)
        await wakeup

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        """Resume one stream per loop iteration, so that streams that started together don't starve the others."""
        while self._waiting and self._waiting[0][1].done():  # the stream was cancelled
            self._waiting.popleft()
        self._is_ticking = bool(self._waiting)
        if not self._waiting:
            return
        if self._waiting[0][0] > loop.time():
            loop.call_later(TICK_SECONDS, self._tick, loop)
            return
        _, wakeup = self._waiting.popleft()
        wakeup.set_result(None)
        loop.call_soon(self._tick, loop)

    def _change_count(self, count: int) -> None:
        self._streams += count
        seconds = (self._streams - UNTHROTTLED_STREAMS) / READS_PER_SECOND
        self.pause_seconds = min(seconds, MAX_PAUSE_SECONDS) if seconds >= MIN_PAUSE_SECONDS else 0.0


def merge_text_chunks(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks with neighbouring text chunks merged."""
    merged: list[Chunk] = []
    texts: list[str] = []
    for chunk in chunks:
        if type(chunk) is TextChunk:
            texts.append(chunk.text)
            continue
        if texts:
            merged.append(TextChunk("".join(texts)))
            texts.clear()
        merged.append(chunk)
    if texts:
        merged.append(TextChunk("".join(texts)))
    return merged


class HttpProvider:
    """The base class of providers that post requests to one `path` of an endpoint and send `headers` with each.

    `session` comes from `open_session`. `encode` creates the body of a request. `create_decoder` returns a new
    decoder for each reply.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        endpoint: Endpoint,
        path: str,
        headers: Mapping[str, str],
        encode: Callable[[Request, Endpoint], bytes],
        create_decoder: Callable[[], ReplyDecoder],
    ) -> None:
        self._encode = encode
        self._create_decoder = create_decoder
        self._session = session
        self._endpoint = endpoint
        self._url = endpoint.base_url.rstrip("/") + path
        default_headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._headers = {**default_headers, **endpoint.extra_headers, **headers}
        self._throttle = ReadThrottle()

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Yield the reply's chunks; see `Provider.stream`. Errors never contain the key."""
        return self._stream(self._encode(request, self._endpoint), ReplyParser(self._create_decoder()))

    async def is_reachable(self) -> bool:
        """Return whether the server answers a request for its models, which uses no tokens.

        Any answer counts except a server error and a rate limit, because even a rejected key proves that the server
        works. Cancelling closes the connection.
        """
        url = self._endpoint.base_url.rstrip("/") + "/models"
        try:
            async with (
                asyncio.timeout(PROBE_SECONDS),
                self._session.get(url, headers=self._headers, allow_redirects=False) as response,
            ):
                return response.status < 500 and response.status != TOO_MANY_REQUESTS
        except (*NETWORK_ERRORS, TimeoutError, ValueError):
            return False

    async def _stream(self, body: bytes, parser: ReplyParser) -> AsyncGenerator[Chunk, None]:
        try:
            response = await self._post_request(body)
            del body  # a long body must not stay in memory while the reply arrives
            try:
                if response.status >= 300:
                    raise await ResponseBody(response).read_error()
                reply = ReplyStream(response, parser)
                with self._throttle.count_stream():
                    while chunks := await reply.next_batch():
                        for chunk in merge_text_chunks(chunks) if self._throttle.pause_seconds else chunks:
                            yield chunk
                        if self._throttle.pause_seconds and not parser.is_complete:
                            await self._pause_reading(response)
            finally:
                response.close()
        except ProviderError as error:
            error.args = (redact_secrets(str(error), self._endpoint.secrets),)
            raise

    async def _pause_reading(self, response: aiohttp.ClientResponse) -> None:
        """Let the kernel buffer incoming data for a moment, so that one read returns all of it."""
        connection = response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.pause_reading()
            await self._throttle.wait()
            connection.transport.resume_reading()

    async def _post_request(self, body: bytes) -> aiohttp.ClientResponse:
        address = self._endpoint.base_url.rpartition("@")[2]  # the part before the @ may contain a password
        try:
            # A file object, because aiohttp warns about large `bytes`, and one picture is large enough.
            data = io.BytesIO(body)
            return await self._session.post(self._url, data=data, headers=self._headers, allow_redirects=False)
        except aiohttp.ClientConnectorCertificateError as error:
            text = f"The certificate of {address} can't be trusted: {describe_network_error(error)}"
            raise BadAddress(text, code="bad_certificate") from error
        except aiohttp.ClientConnectorError as error:
            # The traceback's frames reference each other and the whole request, which would stay until garbage
            # collection.
            clear_frames(error.__traceback__)
            clear_frames(error.os_error.__traceback__)
            raise Unreachable(f"Can't connect to {address}: {describe_network_error(error)}") from error
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
            pass
        except NETWORK_ERRORS as error:
            raise TransientProviderError(f"No answer from {address}: {describe_network_error(error)}") from error
        except ValueError:
            pass
        # No cause is attached: aiohttp's error may contain the invalid header or the password.
        raise BadAddress(f"The request to {address} can't be sent. Check the base URL, key and headers.")


def bearer_headers(endpoint: Endpoint) -> dict[str, str]:
    """Return the `Authorization: Bearer` header, or no headers if the endpoint has no key."""
    return {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
