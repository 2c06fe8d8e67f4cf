"""Providers that talk to a fake model server, and the replies collected from them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from hark.protocol.messages import UserMessage
from hark.protocol.provider import Chunk, EndChunk, KeepAliveChunk, Provider, ProviderError, Request, TextChunk
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
async def open_provider(
    api: Api, *script: Behaviour, endpoint: Endpoint = ENDPOINT, is_strict: bool = True
) -> AsyncGenerator[tuple[Provider, ModelServer]]:
    """Yield a provider for this API and its fake server, which rejects invalid requests if `is_strict` is set."""
    async with ModelServer(script, is_strict) as server, open_session() as session:
        yield api(session, replace(endpoint, base_url=server.base_url)), server


@asynccontextmanager
async def open_chat_provider(
    *script: Behaviour, endpoint: Endpoint = ENDPOINT
) -> AsyncGenerator[tuple[Provider, ModelServer]]:
    async with open_provider(OpenAIChat, *script, endpoint=endpoint) as (provider, server):
        yield provider, server


@dataclass
class CollectedReply:
    """The chunks of one reply, which end with exactly one EndChunk or an error."""

    chunks: list[Chunk] = field(default_factory=list[Chunk])
    error: ProviderError | None = None

    @property
    def text(self) -> str:
        return "".join(chunk.text for chunk in self.chunks if isinstance(chunk, TextChunk))

    @property
    def ends(self) -> list[EndChunk]:
        return [chunk for chunk in self.chunks if isinstance(chunk, EndChunk)]


async def collect_reply(provider: Provider, request: Request = REQUEST) -> CollectedReply:
    collected = CollectedReply()
    try:
        async for chunk in provider.stream(request):
            if not isinstance(chunk, KeepAliveChunk):
                collected.chunks.append(chunk)
    except ProviderError as error:
        collected.error = error
    assert len(collected.ends) == (1 if collected.error is None else 0)
    assert collected.error is not None or collected.chunks[-1] == collected.ends[0]
    return collected


async def collect_reply_to(
    behaviour: Behaviour, endpoint: Endpoint = ENDPOINT, api: Api = OpenAIChat
) -> CollectedReply:
    async with open_provider(api, behaviour, endpoint=endpoint) as (provider, _):
        return await collect_reply(provider)
