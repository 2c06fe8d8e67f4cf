"""The wire protocol of Anthropic's models: messages."""

from collections.abc import AsyncGenerator

import aiohttp

from hark.protocol.provider import Chunk, Request
from hark.providers.anthropic.reply import AnthropicDialect
from hark.providers.anthropic.request import encode_request
from hark.providers.endpoint import Endpoint
from hark.providers.model_connection import ModelConnection
from hark.providers.reply_fold import ReplyFold

VERSION = "2023-06-01"


class Anthropic:
    """A model behind a messages API, over a session from `open_session`."""

    def __init__(self, session: aiohttp.ClientSession, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        headers = {"anthropic-version": VERSION}
        if endpoint.key:
            headers["x-api-key"] = endpoint.key
        self._line = ModelConnection(session, endpoint, "/messages", headers)

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Yield the reply's chunks; see `Provider.stream`."""
        return self._line.ask(encode_request(request, self._endpoint), ReplyFold(AnthropicDialect()))
