"""The `web_search` tool, with each kind of search service."""

import asyncio
import json
from pathlib import Path
from typing import Any, Literal

import pytest
from aiohttp import web

from hark.protocol.messages import Effect
from hark.tools.web.search import WebSearchTool, make_search_tools
from hark.tools.web.settings import WebSettings
from tests.tools.fake_context import FakeContext, call_tool
from tests.tools.web.servers import run_raw_server, run_server

PLAIN = [
    {"title": "First <b>hit</b>", "url": "https://a.example/", "content": "about &amp; around"},
    {"title": "Second", "url": "https://b.example/", "content": None, "score": 1.5},
]
LISTED = "1. First hit\n   https://a.example/\n   about & around\n\n2. Second\n   https://b.example/"


def answer_with(answer: Any, status: int = 200) -> Any:
    async def handle(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=answer if isinstance(answer, str) else json.dumps(answer))

    return handle


async def test_searxng_is_queried_for_json_even_on_a_private_address() -> None:
    async with run_server(answer_with({"query": "x", "results": PLAIN})) as server:
        tool = WebSearchTool(WebSettings(search_url=server.url + "/search?q={query}&format=json"))
        output = await call_tool(tool, {"query": "fish & chips + ü", "count": 5}, FakeContext(Path()))
    assert LISTED in output.text
    assert output.text.startswith("[web text ")
    assert dict(server.requests[0].query) == {"q": "fish & chips + ü", "format": "json"}


async def test_the_query_is_appended_to_a_url_without_placeholders() -> None:
    async with run_server(answer_with({"results": []})) as server:
        output = await call_tool(
            WebSearchTool(WebSettings(search_url=server.url + "/s")), {"query": "x"}, FakeContext(Path())
        )
    assert output.text == "No results. Try other words."
    assert dict(server.requests[0].query) == {"q": "x", "format": "json"}


async def test_brave_gets_its_key_in_a_header() -> None:
    answer = {"web": {"results": [{"title": "T", "url": "https://t.example/", "description": "<strong>d</strong>"}]}}
    async with run_server(answer_with(answer)) as server:
        url = server.url + "/res/v1/web/search?q={query}&count={count}"
        settings = WebSettings(search_url=url, search_kind="brave", search_key_env="KEY")
        output = await call_tool(
            WebSearchTool(settings, {"KEY": "secret"}), {"query": "x", "count": 3}, FakeContext(Path())
        )
    assert "1. T\n   https://t.example/\n   d\n" in output.text
    assert server.requests[0].headers["X-Subscription-Token"] == "secret"
    assert server.requests[0].query["count"] == "3"


async def test_tavily_gets_a_post_request() -> None:
    bodies: list[Any] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        bodies.append(await request.json())
        return web.json_response({"results": PLAIN})

    async with run_server(handle) as server:
        settings = WebSettings(search_url=server.url, search_kind="tavily", search_key_env="KEY")
        output = await call_tool(
            WebSearchTool(settings, {"KEY": "secret"}), {"query": "x", "count": 1}, FakeContext(Path())
        )
    assert "1. First hit" in output.text
    assert "2. Second" not in output.text
    assert bodies == [{"query": "x", "max_results": 1}]
    assert server.requests[0].headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        (WebSettings(), 0),
        (WebSettings(search_url="http://localhost/search"), 1),
        (WebSettings(search_kind="brave", search_key_env="KEY"), 1),
    ],
)
def test_there_is_no_search_tool_without_a_configured_service(settings: WebSettings, count: int) -> None:
    assert len(make_search_tools(settings)) == count


@pytest.mark.parametrize("kind", ["brave", "tavily"])
async def test_a_missing_key_causes_an_error_without_a_request(kind: Literal["brave", "tavily"]) -> None:
    tool = WebSearchTool(WebSettings(search_kind=kind, search_key_env="SEARCH_KEY"), {})
    output = await call_tool(tool, {"query": "x"}, FakeContext(Path()))
    assert output.effect is Effect.NOT_STARTED
    assert "SEARCH_KEY is not set" in output.text


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        ("bad key: secret", 401, "answered 401: bad key: [hidden]."),
        ("<html>", 200, "response is not in the format of searxng"),
        ({"items": []}, 200, "response is not in the format of searxng"),
        ("", 302, "answered 302"),
    ],
)
async def test_a_failing_service_is_reported_without_the_key(answer: Any, status: int, message: str) -> None:
    async with run_server(answer_with(answer, status)) as server:
        settings = WebSettings(search_url=server.url, search_key_env="KEY")
        output = await call_tool(WebSearchTool(settings, {"KEY": "secret"}), {"query": "x"}, FakeContext(Path()))
    assert output.is_error
    assert message in output.text
    assert "secret" not in output.text


async def test_an_unreachable_service_causes_an_error() -> None:
    output = await call_tool(
        WebSearchTool(WebSettings(search_url="http://127.0.0.1:1/")), {"query": "x"}, FakeContext(Path())
    )
    assert output.is_error
    assert "could not be reached" in output.text


async def test_an_unresponsive_service_causes_an_error_after_the_time_limit() -> None:
    async with run_raw_server(b"") as server:
        settings = WebSettings(search_url=f"http://127.0.0.1:{server.port}/", timeout_seconds=0.1)
        output = await call_tool(WebSearchTool(settings), {"query": "x"}, FakeContext(Path()))
        await server.disconnected.wait()
    assert "took longer than 0.1 seconds" in output.text


async def test_cancelling_closes_the_connection() -> None:
    async with run_raw_server(b"") as server:
        settings = WebSettings(search_url=f"http://127.0.0.1:{server.port}/")
        task = asyncio.create_task(call_tool(WebSearchTool(settings), {"query": "x"}, FakeContext(Path())))
        await server.requested.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.disconnected.wait()


async def test_an_empty_query_is_rejected() -> None:
    output = await call_tool(WebSearchTool(WebSettings(search_url="http://x/")), {"query": " "}, FakeContext(Path()))
    assert output.effect is Effect.NOT_STARTED
