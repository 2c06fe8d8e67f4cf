"""Servers over streamable HTTP: calls, cuts, lost networks and forgotten sessions."""

import asyncio
import time
from pathlib import Path

import pytest

from hark.mcp.auth import free_port
from hark.mcp.failures import RetryPolicy
from hark.mcp.offers import ServerState
from hark.protocol.messages import Effect
from tests.mcp.http_fixture import ModernOnly, Remote, refusing, remote
from tests.mcp.mcp_fixture import Person, running, starting
from tests.waiting import at_most, until


async def test_a_remote_tool_is_listed_called_and_shows_progress(tmp_path: Path) -> None:
    async with remote() as server, running(tmp_path, far={"url": server.url}) as world:
        names = [tool.spec.name for tool in world.servers.tools()]
        assert (await world.call("far__echo", text="hi")).text == "hi"
        await world.call("far__steps")
    assert names == ["far__echo", "far__wait", "far__ask", "far__steps", "far__grow"]
    assert world.context.shown == "1/2 half\n"


async def test_a_cut_remote_call_returns_at_once_and_the_server_stops_its_work(tmp_path: Path) -> None:
    async with remote() as server, running(tmp_path, far={"url": server.url}) as world:
        call = asyncio.create_task(world.call("far__wait"))
        await server.begun.wait()
        began = time.perf_counter()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        took = time.perf_counter() - began
        await server.cancelled.wait()
        assert (await world.call("far__echo", text="next")).text == "next"
    assert took < at_most(0.2)


async def test_a_remote_form_is_put_to_the_person(tmp_path: Path) -> None:
    person = Person(tmp_path, "blue")
    async with remote() as server, running(tmp_path, far={"url": server.url}) as world:
        assert (await world.call("far__ask", person)).text == "accept"
    assert "The MCP server far asks: Which?" in person.questions[0].text


async def test_a_forgotten_session_is_opened_anew_and_the_call_is_done(tmp_path: Path) -> None:
    async with remote() as server, running(tmp_path, far={"url": server.url}) as world:
        await world.call("far__echo", text="before")
        await server.stop()
        await server.start()  # the same address, and no memory of us
        output = await world.call("far__echo", text="after")
        status = world.servers.status()[0]
    assert (output.text, output.is_error) == ("after", False)
    assert status.restarts >= 1


async def test_a_lost_server_fails_the_call_under_way_and_comes_back(tmp_path: Path) -> None:
    patience = RetryPolicy(first_seconds=0.05, tries=50)
    async with remote() as server, running(tmp_path, patience, far={"url": server.url}) as world:
        call = asyncio.create_task(world.call("far__wait"))
        await server.begun.wait()
        await server.stop()
        lost = await call
        away = await world.call("far__echo", text="away")
        await server.start()
        await world.servers.reached(ServerState.CONNECTED)
        back = await world.call("far__echo", text="back")
    assert lost.is_error
    assert lost.effect is Effect.UNKNOWN
    assert away.is_error
    assert back.text == "back"


async def test_a_server_that_knows_only_the_newer_protocol_is_used_the_same_way(tmp_path: Path) -> None:
    person = Person(tmp_path, "blue")
    server = Remote(free_port())
    await server.start(ModernOnly(server.make().streamable_http_app()))
    async with running(tmp_path, far={"url": server.url}) as world:
        assert (await world.call("far__echo", text="hi")).text == "hi"
        call = asyncio.create_task(world.call("far__wait"))
        await server.begun.wait()
        call.cancel()
        await server.cancelled.wait()
        await world.call("far__grow")
        await until(lambda: "far__grown" in [tool.spec.name for tool in world.servers.tools()])
        await world.call("far__steps", person)
    await server.stop()
    assert person.shown == "1/2 half\n"


async def test_an_address_where_nobody_listens_is_parked_and_said(tmp_path: Path) -> None:
    async with running(tmp_path, RetryPolicy(tries=1), far={"url": f"http://127.0.0.1:{free_port()}/mcp"}) as world:
        output = await world.call("far__any")
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert "can't be reached" in output.text


async def test_a_server_that_takes_connections_and_never_answers_is_given_up_in_time(tmp_path: Path) -> None:
    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    listener = await asyncio.start_server(swallow, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    settings = {"url": f"http://127.0.0.1:{port}/mcp", "start_seconds": 0.3}
    async with listener, running(tmp_path, RetryPolicy(tries=1), far=settings) as world:
        output = await world.call("far__any")
    assert "did not answer within 0.3 s" in output.text


@pytest.mark.parametrize(("status", "words"), [(401, "set oauth = true"), (403, "HTTP 403"), (503, "HTTP 503")])
async def test_a_refusal_says_what_to_do(status: int, words: str, tmp_path: Path) -> None:
    async with refusing(status) as url, running(tmp_path, RetryPolicy(tries=1), far={"url": url}) as world:
        output = await world.call("far__any")
    assert words in output.text


async def test_headers_are_sent_with_what_the_environment_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARK_TEST_KEY", "k3y")
    seen: list[str] = []
    settings = {"headers": {"Authorization": "Bearer ${HARK_TEST_KEY}"}, "start_seconds": 5}
    async with (
        refusing(500, seen) as url,
        starting(tmp_path, RetryPolicy(tries=1), far={"url": url, **settings}) as world,
    ):
        await world.servers.reached(ServerState.PARKED)
        status = world.servers.status()[0]
    assert "Bearer k3y" in seen[0]
    assert "k3y" not in status.last_error
