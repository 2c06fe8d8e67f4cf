"""Logging in to remote servers, against a real authorization server."""

import asyncio
import re
import stat
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from hark.mcp.auth import Redirects, TokenFile, free_port
from hark.mcp.failures import RetryPolicy
from hark.mcp.offers import ServerState
from tests.mcp.http_fixture import Gate, gated
from tests.mcp.mcp_fixture import World, running, starting
from tests.waiting import until


async def browse(page: str) -> str:
    """Do what a browser does with a page: follow it to its end."""
    async with aiohttp.ClientSession() as browser, browser.get(page) as response:
        return await response.text()


async def log_in(world: World) -> None:
    await world.servers.reached(ServerState.LOGIN)
    page = re.search(r"http\S+", world.notices[-1])
    assert page is not None
    assert "go back to Hark" in await browse(page[0])
    await world.servers.reached(ServerState.CONNECTED)


async def test_a_person_logs_in_once_and_the_tokens_are_kept_for_them_alone(tmp_path: Path) -> None:
    gate = Gate()
    async with gated(gate) as server:
        settings = {"url": server.url, "oauth": True}
        async with starting(tmp_path, far=settings) as world:
            await log_in(world)
            assert (await world.call("far__echo", text="in")).text == "in"
        async with running(tmp_path, far={**settings, "start": "eager"}) as world:
            await world.servers.reached(ServerState.CONNECTED)
            assert (await world.call("far__echo", text="again")).text == "again"
            assert world.notices == []
    file = tmp_path / "mcp" / "far.oauth.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert gate.logins == 1


async def test_tokens_that_have_ended_are_renewed_without_a_person(tmp_path: Path) -> None:
    gate = Gate()
    async with gated(gate) as server:
        settings = {"url": server.url, "oauth": True}
        async with starting(tmp_path, far=settings) as world:
            await log_in(world)
        TokenFile(tmp_path / "mcp" / "far.oauth.json").update(ends_at=1.0)
        async with starting(tmp_path, far=settings) as world:
            assert (await world.call("far__echo", text="renewed")).text == "renewed"
            assert world.notices == []
    assert (gate.logins, gate.renewals) == (1, 1)


async def test_tokens_that_were_taken_back_cost_a_new_login(tmp_path: Path) -> None:
    gate = Gate()
    async with gated(gate) as server:
        settings = {"url": server.url, "oauth": True, "start": "eager"}
        async with starting(tmp_path, far=settings) as world:
            await log_in(world)
        gate.forget()
        async with starting(tmp_path, far=settings) as world:
            await log_in(world)
            assert (await world.call("far__echo", text="in")).text == "in"
    assert gate.logins == 2


async def test_a_call_before_the_login_says_at_once_what_to_do(tmp_path: Path) -> None:
    async with gated(Gate()) as server, starting(tmp_path, far={"url": server.url, "oauth": True}) as world:
        await world.servers.reached(ServerState.LOGIN)
        output = await world.call("far__echo", text="x")
        assert len(world.notices) == 1
    assert output.is_error
    assert "a person has to log in first" in output.text


async def test_a_login_that_nobody_does_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.mcp.auth.LOGIN_SECONDS", 0.2)
    async with (
        gated(Gate()) as server,
        starting(tmp_path, RetryPolicy(), far={"url": server.url, "oauth": True}) as world,
    ):
        await world.servers.reached(ServerState.PARKED)
        assert "nobody logged in" in world.servers.status()[0].last_error
    assert len(world.notices) == 2, "the page to open, and that it was given up"


async def test_an_answer_with_a_foreign_state_is_refused(tmp_path: Path) -> None:
    port = free_port()
    settings: dict[str, Any] = {"oauth": {"redirect_port": port}}
    async with gated(Gate()) as server, starting(tmp_path, far={"url": server.url, **settings}) as world:
        await world.servers.reached(ServerState.LOGIN)
        await browse(f"http://127.0.0.1:{port}/callback?code=stolen&state=foreign")
        await world.servers.reached(ServerState.PARKED)
        assert "the login failed" in world.servers.status()[0].last_error


async def test_other_requests_are_not_taken_for_the_answer() -> None:
    redirects = Redirects(free_port())
    await redirects.open()
    answer = asyncio.create_task(redirects.answer(10))
    address = f"http://127.0.0.1:{redirects.port}"
    async with aiohttp.ClientSession() as browser:
        async with browser.get(f"{address}/favicon.ico") as response:
            assert response.status == 404
        assert not answer.done()
        await browse(f"{address}/callback?code=c&state=s&iss=i")
    assert await answer == {"code": "c", "state": "s", "iss": "i"}
    with pytest.raises(aiohttp.ClientError):
        await browse(address)


def test_a_broken_token_file_is_no_login(tmp_path: Path) -> None:
    file = tmp_path / "x.oauth.json"
    file.write_text("{")
    assert TokenFile(file).load() == msgspec.convert({}, type(TokenFile(file).load()))
    TokenFile(file).update(port=5)
    assert TokenFile(file).load().port == 5


async def test_a_server_that_is_logged_in_survives_the_end_of_its_token(tmp_path: Path) -> None:
    gate = Gate(token_seconds=1)
    async with gated(gate) as server, starting(tmp_path, far={"url": server.url, "oauth": True}) as world:
        await log_in(world)
        before = gate.renewals
        await asyncio.sleep(1.1)
        assert (await world.call("far__echo", text="still")).text == "still"
        await until(lambda: gate.renewals > before)
    assert gate.logins == 1
