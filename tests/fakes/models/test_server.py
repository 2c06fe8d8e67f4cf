"""The fake model server as a separate process."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from hark.protocol.messages import UserMessage
from hark.protocol.provider import CallChunk, Chunk, EndChunk, ProviderError, RateLimited, Request, TextChunk
from hark.providers.connections import open_session
from hark.providers.endpoint import Endpoint
from hark.providers.openai.chat import OpenAIChat
from tests.fakes.models.behaviours import tokens
from tests.fakes.models.server import ModelServer
from tests.providers.provider_fixture import APIS, Api


@asynccontextmanager
async def server_process(*options: str) -> AsyncGenerator[tuple[aiohttp.ClientSession, str]]:
    command = [sys.executable, "-m", "tests.fakes.models.server", "--port", "0", *options]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        port: int = json.loads(await process.stdout.readline())["port"]
        async with open_session() as session:
            yield session, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()


async def collect_reply(session: aiohttp.ClientSession, url: str, model: str, api: Api = OpenAIChat) -> list[Chunk]:
    request = Request("", [UserMessage("1", "hello")])
    return [chunk async for chunk in api(session, Endpoint(f"{url}/v1", model)).stream(request)]


async def received_requests(session: aiohttp.ClientSession, url: str) -> list[dict[str, Any]]:
    async with session.get(f"{url}/_requests") as response:
        return await response.json()


async def test_the_model_name_selects_the_behaviour_and_requests_are_listed() -> None:
    async with server_process() as (session, url):
        texts = [chunk for chunk in await collect_reply(session, url, "stream-20@1000") if isinstance(chunk, TextChunk)]
        assert len(texts) == 20
        assert TextChunk("hello") in await collect_reply(session, url, "echo")
        assert {
            chunk.index for chunk in await collect_reply(session, url, "calls-2") if isinstance(chunk, CallChunk)
        } == {0, 1}
        for model, code in [("drop-2", "stream_cut"), ("status-503@1", "overloaded"), ("what", "bad_model")]:
            with pytest.raises(ProviderError) as raised:
                await collect_reply(session, url, model)
            assert raised.value.code == code
        models = [request["body"]["model"] for request in await received_requests(session, url)]
    assert models == ["stream-20@1000", "echo", "calls-2", "drop-2", "status-503@1", "what"]


async def test_the_server_process_supports_all_three_apis() -> None:
    async with server_process("--strict") as (session, url):
        for api in APIS:
            assert TextChunk("hello") in await collect_reply(session, url, "echo", api)
            assert EndChunk("calls") in await collect_reply(session, url, "thinking-2", api)
            with pytest.raises(ProviderError) as raised:
                await collect_reply(session, url, "status-429@3", api)
            assert isinstance(raised.value, RateLimited)
            assert raised.value.retry_after == 3.0
        paths = [request["path"] for request in await received_requests(session, url)]
    assert paths == [path for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages") for _ in range(3)]


async def test_a_strict_server_process_refuses_invalid_requests() -> None:
    bad = {"model": "token-1", "max_tokens": 9, "messages": [{"role": "assistant", "content": "hello"}]}
    for options, status in [((), 200), (("--strict",), 400)]:
        async with server_process(*options) as (session, url):
            headers = {"anthropic-version": "2023-06-01"}
            async with session.post(f"{url}/v1/messages", json=bad, headers=headers) as response:
                assert response.status == status
                assert ("the first message must be the user's" in await response.text()) is (status == 400)


async def test_the_server_process_reports_a_client_disconnect() -> None:
    async with server_process() as (session, url):
        stream = OpenAIChat(session, Endpoint(f"{url}/v1", "hang-1")).stream(Request("", [UserMessage("1", "hello")]))
        assert await anext(stream) == TextChunk("tok0 ")
        await stream.aclose()
        (seen,) = await received_requests(session, url)
        while seen["left"] is None:
            (seen,) = await received_requests(session, url)
        assert seen["left"] > seen["arrived"]


async def test_tokens_are_sent_at_the_requested_rate() -> None:
    async with ModelServer([tokens(10, rate=200)]) as server, open_session() as session:
        start = asyncio.get_running_loop().time()
        await collect_reply(session, server.base_url.removesuffix("/v1"), "any")
        assert asyncio.get_running_loop().time() - start >= 0.045
