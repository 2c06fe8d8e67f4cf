"""A model behind an HTTP API: a request is posted, its reply comes back as chunks."""

import io
from collections.abc import AsyncGenerator, Callable, Mapping
from traceback import clear_frames

import aiohttp

from hark.protocol.provider import BadAddress, Chunk, ProviderError, Request, TransientProviderError, Unreachable
from hark.providers.endpoint import Endpoint
from hark.providers.read_throttle import ReadThrottle, joined
from hark.providers.reply_fold import Dialect, ReplyFold
from hark.providers.reply_stream import NETWORK_ERRORS, Body, ReplyStream, reason
from hark.text.redaction import redacted


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
