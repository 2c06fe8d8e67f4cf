"""The wire protocol that most model servers speak: OpenAI's chat completions over HTTP/1.1."""

import io
from collections.abc import AsyncGenerator

import aiohttp

from hark.protocol.provider import Chunk, ProviderError, Request, TransientProviderError
from hark.providers.body import NETWORK_ERRORS, Body, reason
from hark.providers.endpoint import Endpoint
from hark.providers.errors import redacted
from hark.providers.openai_messages import encode_request
from hark.providers.openai_reply import ReplyFold
from hark.providers.reply_stream import ReplyStream


class OpenAIChat:
    """A model behind a chat completions API, over a session from `open_session`."""

    def __init__(self, session: aiohttp.ClientSession, endpoint: Endpoint) -> None:
        self._session = session
        self._endpoint = endpoint
        self._url = endpoint.base_url.rstrip("/") + "/chat/completions"
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", **endpoint.extra_headers}
        if key := endpoint.api_key.strip():
            self._headers["Authorization"] = f"Bearer {key}"

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Yield the reply's chunks; see `Provider.stream`. The key is in no error, even if the server repeats it."""
        try:
            response = await self._post(encode_request(request, self._endpoint))
            try:
                if response.status >= 300:
                    raise await Body(response).refusal()
                reply = ReplyStream(response, ReplyFold())
                while chunks := await reply.next():
                    for chunk in chunks:
                        yield chunk
            finally:
                response.close()
        except ProviderError as error:
            error.args = (redacted(str(error), self._endpoint.secrets),)
            raise

    async def _post(self, body: bytes) -> aiohttp.ClientResponse:
        where = self._endpoint.base_url.rpartition("@")[2]  # a password may stand before the @
        try:
            # As a file, because aiohttp warns of large bytes, and one picture is enough for that.
            data = io.BytesIO(body)
            return await self._session.post(self._url, data=data, headers=self._headers, allow_redirects=False)
        except aiohttp.ClientConnectorCertificateError as error:
            text = f"The certificate of {where} can't be trusted: {reason(error)}"
            raise ProviderError(text, code="bad_certificate") from error
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
            pass
        except NETWORK_ERRORS as error:
            raise TransientProviderError(f"No answer from {where}: {reason(error)}") from error
        except ValueError:
            pass
        # Without a cause: what aiohttp says here may hold the header or the password that it could not use.
        raise ProviderError(f"Nothing can be sent to {where}: check the base URL, key and headers.", code="bad_url")
