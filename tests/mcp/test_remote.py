"""Servers over streamable HTTP: calls, cancelling, lost connections and expired sessions."""

import asyncio
import time
from pathlib import Path

import pytest

from hark.mcp.auth import find_free_port
from hark.mcp.retry_policy import RetryPolicy
from hark.mcp.server_offer import ServerState
from hark.protocol.messages import Effect
from tests.mcp.http_fixture import OldHandshakeRejector, RemoteServer, running_refusing_server, running_remote_server
from tests.mcp.mcp_fixture import AnsweringUser, running_servers, starting_servers
from tests.waiting import until


async def test_remote_tools_are_listed_and_called_and_report_their_progress(tmp_path: Path) -> None:
    async with running_remote_server() as server, running_servers(tmp_path, far={"url": server.url}) as fixture:
        names = [tool.spec.name for tool in fixture.servers.tools()]
        assert (await fixture.call("far__echo", text="hi")).text == "hi"
        await fixture.call("far__steps")
    assert names == ["far__echo", "far__wait", "far__ask", "far__steps", "far__grow"]
    assert fixture.context.shown == "1/2 half\n"


async def test_a_cancelled_remote_call_returns_immediately_and_stops_on_the_server(tmp_path: Path) -> None:
    async with running_remote_server() as server, running_servers(tmp_path, far={"url": server.url}) as fixture:
        durations: list[float] = []
        for _ in range(3):  # at least one is fast, even on a busy machine
            server.call_started.clear()
            server.cancelled.clear()
            call = asyncio.create_task(fixture.call("far__wait"))
            await server.call_started.wait()
            started_at = time.perf_counter()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            durations.append(time.perf_counter() - started_at)
            await server.cancelled.wait()
        assert (await fixture.call("far__echo", text="next")).text == "next"
    assert min(durations) < 0.5


async def test_a_form_from_a_remote_server_is_shown_to_the_user(tmp_path: Path) -> None:
    user = AnsweringUser(tmp_path, "blue")
    async with running_remote_server() as server, running_servers(tmp_path, far={"url": server.url}) as fixture:
        assert (await fixture.call("far__ask", user)).text == "accept"
    assert "The MCP server far asks: Which?" in user.questions[0].text


async def test_a_call_succeeds_in_a_new_session_when_the_server_lost_the_old_session(tmp_path: Path) -> None:
    async with running_remote_server() as server, running_servers(tmp_path, far={"url": server.url}) as fixture:
        await fixture.call("far__echo", text="before")
        await server.stop()
        await server.start()  # the same address, without the old session
        output = await fixture.call("far__echo", text="after")
        status = fixture.servers.status()[0]
    assert (output.text, output.is_error) == ("after", False)
    assert status.restarts >= 1


async def test_a_lost_server_fails_the_running_call_and_is_reconnected(tmp_path: Path) -> None:
    retry_policy = RetryPolicy(first_seconds=0.05, tries=50)
    async with (
        running_remote_server() as server,
        running_servers(tmp_path, retry_policy, far={"url": server.url}) as fixture,
    ):
        call = asyncio.create_task(fixture.call("far__wait"))
        await server.call_started.wait()
        await server.stop()
        lost = await call
        unreachable = await fixture.call("far__echo", text="away")
        await server.start()
        await fixture.servers.wait_for_state(ServerState.CONNECTED)
        back = await fixture.call("far__echo", text="back")
    assert lost.is_error
    assert lost.effect is Effect.UNKNOWN
    assert unreachable.is_error
    assert back.text == "back"


async def test_a_server_that_supports_only_the_newer_protocol_works_the_same_way(tmp_path: Path) -> None:
    user = AnsweringUser(tmp_path, "blue")
    server = RemoteServer(find_free_port())
    await server.start(OldHandshakeRejector(server.create_mcp_server().streamable_http_app()))
    async with running_servers(tmp_path, far={"url": server.url}) as fixture:
        assert (await fixture.call("far__echo", text="hi")).text == "hi"
        call = asyncio.create_task(fixture.call("far__wait"))
        await server.call_started.wait()
        call.cancel()
        await server.cancelled.wait()
        await fixture.call("far__grow")
        await until(lambda: "far__grown" in [tool.spec.name for tool in fixture.servers.tools()])
        await fixture.call("far__steps", user)
    await server.stop()
    assert user.shown == "1/2 half\n"


async def test_an_unreachable_url_is_reported_and_the_server_is_suspended(tmp_path: Path) -> None:
    async with running_servers(
        tmp_path, RetryPolicy(tries=1), far={"url": f"http://127.0.0.1:{find_free_port()}/mcp"}
    ) as fixture:
        output = await fixture.call("far__any")
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert "can't be reached" in output.text


async def test_a_server_that_never_answers_is_abandoned_after_the_start_time_limit(tmp_path: Path) -> None:
    async def accept_silently(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    listener = await asyncio.start_server(accept_silently, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    settings = {"url": f"http://127.0.0.1:{port}/mcp", "start_seconds": 0.3}
    async with listener, running_servers(tmp_path, RetryPolicy(tries=1), far=settings) as fixture:
        output = await fixture.call("far__any")
    assert "no answer within 0.3 s" in output.text


@pytest.mark.parametrize(("status", "advice"), [(401, "set oauth = true"), (403, "HTTP 403"), (503, "HTTP status 503")])
async def test_a_call_explains_why_the_server_refused_the_connection(status: int, advice: str, tmp_path: Path) -> None:
    async with (
        running_refusing_server(status) as url,
        running_servers(tmp_path, RetryPolicy(tries=1), far={"url": url}) as fixture,
    ):
        output = await fixture.call("far__any")
    assert advice in output.text


async def test_headers_are_sent_with_environment_variables_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARK_TEST_KEY", "k3y")
    request_heads: list[str] = []
    settings = {"headers": {"Authorization": "Bearer ${HARK_TEST_KEY}"}, "start_seconds": 5}
    async with (
        running_refusing_server(500, request_heads) as url,
        starting_servers(tmp_path, RetryPolicy(tries=1), far={"url": url, **settings}) as fixture,
    ):
        await fixture.servers.wait_for_state(ServerState.FAILED)
        status = fixture.servers.status()[0]
    assert "Bearer k3y" in request_heads[0]
    assert "k3y" not in status.last_error
