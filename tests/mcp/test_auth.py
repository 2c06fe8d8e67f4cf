"""OAuth login to remote servers, against a real authorization server."""

import asyncio
import re
import socket
import stat
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from hark.mcp.auth import RedirectListener, TokenFile, find_free_port
from hark.mcp.retry_policy import RetryPolicy
from hark.mcp.server_offer import ServerState
from tests.mcp.http_fixture import FakeAuthorizationServer, running_server_with_login
from tests.mcp.mcp_fixture import ServersFixture, running_servers, starting_servers
from tests.waiting import until


async def open_in_browser(page: str) -> str:
    """Load a page and follow its redirects, like a browser."""
    async with aiohttp.ClientSession() as browser, browser.get(page) as response:
        return await response.text()


async def log_in(fixture: ServersFixture) -> None:
    await fixture.servers.wait_for_state(ServerState.LOGIN)
    page = re.search(r"http\S+", fixture.notices[-1])
    assert page is not None
    assert "go back to Hark" in await open_in_browser(page[0])
    await fixture.servers.wait_for_state(ServerState.CONNECTED)


async def test_a_login_is_stored_privately_and_reused_at_the_next_start(tmp_path: Path) -> None:
    authorization = FakeAuthorizationServer()
    async with running_server_with_login(authorization) as server:
        settings = {"url": server.url, "oauth": True}
        async with starting_servers(tmp_path, far=settings) as fixture:
            await log_in(fixture)
            assert (await fixture.call("far__echo", text="in")).text == "in"
        async with running_servers(tmp_path, far={**settings, "start": "eager"}) as fixture:
            await fixture.servers.wait_for_state(ServerState.CONNECTED)
            assert (await fixture.call("far__echo", text="again")).text == "again"
            assert fixture.notices == []
    file = tmp_path / "mcp" / "far.oauth.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert authorization.logins == 1


async def test_expired_tokens_are_renewed_without_a_new_login(tmp_path: Path) -> None:
    authorization = FakeAuthorizationServer()
    async with running_server_with_login(authorization) as server:
        settings = {"url": server.url, "oauth": True}
        async with starting_servers(tmp_path, far=settings) as fixture:
            await log_in(fixture)
        TokenFile(tmp_path / "mcp" / "far.oauth.json").update(ends_at=1.0)
        async with starting_servers(tmp_path, far=settings) as fixture:
            assert (await fixture.call("far__echo", text="renewed")).text == "renewed"
            assert fixture.notices == []
    assert (authorization.logins, authorization.renewals) == (1, 1)


async def test_revoked_tokens_require_a_new_login(tmp_path: Path) -> None:
    authorization = FakeAuthorizationServer()
    async with running_server_with_login(authorization) as server:
        settings = {"url": server.url, "oauth": True, "start": "eager"}
        async with starting_servers(tmp_path, far=settings) as fixture:
            await log_in(fixture)
        authorization.revoke_all_tokens()
        async with starting_servers(tmp_path, far=settings) as fixture:
            await log_in(fixture)
            assert (await fixture.call("far__echo", text="in")).text == "in"
    assert authorization.logins == 2


async def test_a_call_before_login_fails_immediately_and_explains_how_to_log_in(tmp_path: Path) -> None:
    async with (
        running_server_with_login(FakeAuthorizationServer()) as server,
        starting_servers(tmp_path, far={"url": server.url, "oauth": True}) as fixture,
    ):
        await fixture.servers.wait_for_state(ServerState.LOGIN)
        output = await fixture.call("far__echo", text="x")
        assert len(fixture.notices) == 1
    assert output.is_error
    assert "the user has to log in first" in output.text


async def test_a_call_that_waits_for_the_connection_fails_when_the_server_asks_for_a_login(tmp_path: Path) -> None:
    settings = {"oauth": True, "start_seconds": 300.0}
    async with (
        running_server_with_login(FakeAuthorizationServer()) as server,
        starting_servers(tmp_path, far={"url": server.url, **settings}) as fixture,
    ):
        output = await fixture.call("far__echo", text="x")
    assert "the user has to log in first" in output.text


async def test_the_server_fails_when_the_login_is_not_completed_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.mcp.auth.LOGIN_SECONDS", 0.2)
    async with (
        running_server_with_login(FakeAuthorizationServer()) as server,
        starting_servers(tmp_path, RetryPolicy(), far={"url": server.url, "oauth": True}) as fixture,
    ):
        await fixture.servers.wait_for_state(ServerState.FAILED)
        assert "the login was not completed in time" in fixture.servers.status()[0].last_error
    assert len(fixture.notices) == 2, "one notice with the login page, and one that the server failed"


async def test_a_login_whose_port_is_in_use_fails_with_the_number_of_the_port(tmp_path: Path) -> None:
    async with running_server_with_login(FakeAuthorizationServer()) as server:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            settings = {"url": server.url, "oauth": {"redirect_port": port}, "start": "eager"}
            async with starting_servers(tmp_path, far=settings) as fixture:
                await fixture.servers.wait_for_state(ServerState.FAILED)
                assert f"the login needs port {port} on this machine" in fixture.servers.status()[0].last_error


async def test_a_redirect_with_a_wrong_state_is_rejected(tmp_path: Path) -> None:
    port = find_free_port()
    settings: dict[str, Any] = {"oauth": {"redirect_port": port}}
    async with (
        running_server_with_login(FakeAuthorizationServer()) as server,
        starting_servers(tmp_path, far={"url": server.url, **settings}) as fixture,
    ):
        await fixture.servers.wait_for_state(ServerState.LOGIN)
        await open_in_browser(f"http://127.0.0.1:{port}/callback?code=stolen&state=foreign")
        await fixture.servers.wait_for_state(ServerState.FAILED)
        assert "the login failed" in fixture.servers.status()[0].last_error


async def test_the_redirect_listener_ignores_other_requests() -> None:
    redirects = RedirectListener(find_free_port())
    await redirects.open()
    answer = asyncio.create_task(redirects.wait_for_redirect(10))
    address = f"http://127.0.0.1:{redirects.port}"
    async with aiohttp.ClientSession() as browser:
        async with browser.get(f"{address}/favicon.ico") as response:
            assert response.status == 404
        assert not answer.done()
        await open_in_browser(f"{address}/callback?code=c&state=s&iss=i")
    assert await answer == {"code": "c", "state": "s", "iss": "i"}
    with pytest.raises(aiohttp.ClientError):
        await open_in_browser(address)


def test_an_invalid_token_file_counts_as_empty_and_can_be_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "x.oauth.json"
    file.write_text("{")
    assert TokenFile(file).load() == msgspec.convert({}, type(TokenFile(file).load()))
    TokenFile(file).update(port=5)
    assert TokenFile(file).load().port == 5


async def test_a_connected_server_renews_its_expired_token(tmp_path: Path) -> None:
    authorization = FakeAuthorizationServer(token_seconds=1)
    async with (
        running_server_with_login(authorization) as server,
        starting_servers(tmp_path, far={"url": server.url, "oauth": True}) as fixture,
    ):
        await log_in(fixture)
        before = authorization.renewals
        await asyncio.sleep(1.1)
        assert (await fixture.call("far__echo", text="still")).text == "still"
        await until(lambda: authorization.renewals > before)
    assert authorization.logins == 1
