"""The wire protocol of OpenAI's own newer models: responses."""

from collections.abc import AsyncGenerator

import aiohttp

from hark.protocol.provider import Chunk, Request
from hark.providers.endpoint import Endpoint
from hark.providers.model_connection import ModelConnection, bearer
from hark.providers.openai.responses_reply import ResponsesDialect
from hark.providers.openai.responses_request import encode_request
from hark.providers.reply_fold import ReplyFold


class OpenAIResponses:
    """A model behind a responses API that keeps nothing, over a session from `open_session`."""

    def __init__(self, session: aiohttp.ClientSession, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._line = ModelConnection(session, endpoint, "/responses", bearer(endpoint))

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Yield the reply's chunks; see `Provider.stream`."""
        return self._line.ask(encode_request(request, self._endpoint), ReplyFold(ResponsesDialect()))
