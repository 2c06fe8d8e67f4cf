"""A provider against a fake server, and what comes out of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from hark.protocol.messages import UserMessage
from hark.protocol.provider import AliveChunk, Chunk, EndChunk, Provider, ProviderError, Request, TextChunk
from hark.providers.anthropic.provider import Anthropic
from hark.providers.connections import open_session
from hark.providers.endpoint import Endpoint
from hark.providers.openai.chat import OpenAIChat
from hark.providers.openai.responses import OpenAIResponses
from tests.fakes.models.behaviours import Behaviour
from tests.fakes.models.server import ModelServer

KEY = "sk-very-secret-key-0123456789"
REQUEST = Request("be brief", [UserMessage("1", "hi")])
ENDPOINT = Endpoint("", "fake", KEY)

Api = type[OpenAIChat] | type[OpenAIResponses] | type[Anthropic]
APIS: tuple[Api, ...] = (OpenAIChat, OpenAIResponses, Anthropic)
each_api = pytest.mark.parametrize("api", APIS)


@asynccontextmanager
async def talk(
    api: Api, *script: Behaviour, endpoint: Endpoint = ENDPOINT, is_strict: bool = True
) -> AsyncGenerator[tuple[Provider, ModelServer]]:
    """A provider of this API, and the strict server that it talks to."""
    async with ModelServer(script, is_strict) as server, open_session() as session:
        yield api(session, replace(endpoint, base_url=server.base_url)), server


@asynccontextmanager
async def chat(*script: Behaviour, endpoint: Endpoint = ENDPOINT) -> AsyncGenerator[tuple[Provider, ModelServer]]:
    async with talk(OpenAIChat, *script, endpoint=endpoint) as (provider, server):
        yield provider, server


@dataclass
class Heard:
    """All that one request brought: exactly one end, or an error."""

    chunks: list[Chunk] = field(default_factory=list[Chunk])
    error: ProviderError | None = None

    @property
    def text(self) -> str:
        return "".join(chunk.text for chunk in self.chunks if isinstance(chunk, TextChunk))

    @property
    def ends(self) -> list[EndChunk]:
        return [chunk for chunk in self.chunks if isinstance(chunk, EndChunk)]


async def hear(provider: Provider, request: Request = REQUEST) -> Heard:
    heard = Heard()
    try:
        async for chunk in provider.stream(request):
            if not isinstance(chunk, AliveChunk):
                heard.chunks.append(chunk)
    except ProviderError as error:
        heard.error = error
    assert len(heard.ends) == (1 if heard.error is None else 0)
    assert heard.error is not None or heard.chunks[-1] == heard.ends[0]
    return heard


async def hear_one(behaviour: Behaviour, endpoint: Endpoint = ENDPOINT, api: Api = OpenAIChat) -> Heard:
    async with talk(api, behaviour, endpoint=endpoint) as (provider, _):
        return await hear(provider)
