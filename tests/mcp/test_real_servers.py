"""Real MCP servers are called, cancelled during a call, killed and restarted."""

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hark.mcp.auth import find_free_port
from hark.mcp.server_offer import ServerState
from hark.protocol.messages import Effect
from tests.mcp.mcp_fixture import AnsweringUser, ServersFixture, running_servers
from tests.mcp.real_servers import INSTALL_SECONDS, find_npm_server, find_pypi_server
from tests.tools.fake_context import find_processes
from tests.waiting import at_most, until

pytestmark = [
    pytest.mark.slow_setup(INSTALL_SECONDS + 60, reason="the first test installs the npm servers"),
    pytest.mark.time_limit(180, reason="Node programs start slowly on a busy machine"),
]
SLOW_SECONDS = 120.0  # Node programs start slowly on a busy machine
LONG_OPERATION = "every__trigger-long-running-operation"


@pytest.fixture(scope="session")
def everything() -> str:
    return find_npm_server("mcp-server-everything")


@pytest.fixture(scope="session")
def filesystem() -> str:
    return find_npm_server("mcp-server-filesystem")


async def cancel_during_call(
    fixture: ServersFixture, has_started: Callable[[], bool], name: str, **arguments: Any
) -> None:
    """Cancel a call that has started. Check that it returns immediately and that no server is restarted."""
    pids = {one.name: one.pid for one in fixture.servers.status()}
    call = asyncio.create_task(fixture.call(name, **arguments))
    await until(has_started, seconds=SLOW_SECONDS)
    assert not call.done()
    started_at = time.perf_counter()
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled()
    assert time.perf_counter() - started_at < at_most(0.3)
    assert {one.name: one.pid for one in fixture.servers.status()} == pids, "a cancelled call restarts no server"


@asynccontextmanager
async def silent_web_site(requested: asyncio.Event) -> AsyncGenerator[str]:
    """Yield the URL of a web server that accepts requests and never answers."""

    async def accept_silently(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requested.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(accept_silently, "127.0.0.1", 0) as listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"


async def test_the_git_server_is_restarted_after_a_kill(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(tmp_path)], check=True)  # noqa: ASYNC221
    async with running_servers(tmp_path, git={"command": find_pypi_server("mcp-server-git")}) as fixture:
        assert "trunk" in (await fixture.call("git__git_status", repo_path=str(tmp_path))).text
        os.kill(fixture.pid("git"), signal.SIGKILL)
        await fixture.servers.wait_for_state(ServerState.WAITING)
        assert "trunk" in (await fixture.call("git__git_status", repo_path=str(tmp_path))).text
    assert find_processes(fixture.cookie) == {}


async def test_the_fetch_server_works_after_a_cancelled_call(tmp_path: Path) -> None:
    settings = {"command": find_pypi_server("mcp-server-fetch"), "args": ["--ignore-robots-txt", "--allow-private-ips"]}
    requested = asyncio.Event()
    async with silent_web_site(requested) as site, running_servers(tmp_path, fetch=settings) as fixture:
        assert "mcp_prompt" in [tool.spec.name for tool in fixture.servers.tools()]
        await cancel_during_call(fixture, requested.is_set, "fetch__fetch", url=site)
        output = await fixture.call("fetch__fetch", url="not an address")
    assert output.is_error
    assert find_processes(fixture.cookie) == {}


async def test_the_everything_server_works_after_a_cancelled_call_and_asks_the_user(
    tmp_path: Path, everything: str
) -> None:
    user = AnsweringUser(tmp_path, "Ada", "(skip)", *(["(skip)"] * 20))
    async with running_servers(tmp_path, every={"command": everything}) as fixture:
        assert (await fixture.call("every__echo", message="hi")).text == "Echo: hi"
        assert (await fixture.call("every__get-tiny-image")).attachments[0].media_type == "image/png"
        await fixture.call(LONG_OPERATION, duration=0.2, steps=2)
        assert "1/2" in fixture.context.shown
        await cancel_during_call(
            fixture, lambda: "/300" in fixture.context.shown, LONG_OPERATION, duration=30, steps=300
        )
        assert (await fixture.call("every__echo", message="still")).text == "Echo: still"
        await until(
            lambda: "every__trigger-elicitation-request" in [t.spec.name for t in fixture.servers.tools()],
            seconds=SLOW_SECONDS,
        )
        asked = await fixture.call("every__trigger-elicitation-request", user)
        read = await fixture.call("mcp_resource", action="read", server="every", uri="demo://resource/dynamic/text/1")
    assert "Ada" in asked.text
    assert "Resource 1" in read.text
    assert find_processes(fixture.cookie) == {}


async def test_the_filesystem_server_may_read_the_directories_in_its_arguments(tmp_path: Path, filesystem: str) -> None:
    home, open_folder = tmp_path / "home", tmp_path / "open"
    open_folder.mkdir()
    (open_folder / "note.txt").write_text("words")
    async with running_servers(home, fs={"command": filesystem, "args": [str(open_folder)]}) as fixture:
        await until(lambda: "allowed directories from MCP roots" in fixture.read_log("fs"), seconds=SLOW_SECONDS)
        read = await fixture.call("fs__read_text_file", path=str(open_folder / "note.txt"))
        refused = await fixture.call("fs__read_text_file", path="/etc/hostname")
        is_changing = {tool.spec.name: tool.spec.is_changing for tool in fixture.servers.tools()}
    assert read.text == "words"
    assert refused.is_error
    assert (is_changing["fs__read_text_file"], is_changing["fs__write_file"]) == (False, True)


async def test_the_everything_server_over_http_works_again_after_a_kill(tmp_path: Path, everything: str) -> None:
    port = find_free_port()

    def start() -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PORT": str(port)}
        quiet = subprocess.DEVNULL
        return subprocess.Popen([everything, "streamableHttp"], env=environment, stdout=quiet, stderr=quiet)

    process = start()
    try:
        await until(lambda: is_answering(port), seconds=SLOW_SECONDS)
        async with running_servers(tmp_path, every={"url": f"http://127.0.0.1:{port}/mcp"}) as fixture:
            assert (await fixture.call("every__echo", message="hi")).text == "Echo: hi"
            await cancel_during_call(
                fixture, lambda: "/300" in fixture.context.shown, LONG_OPERATION, duration=30, steps=300
            )
            assert (await fixture.call("every__echo", message="still")).text == "Echo: still"
            process.kill()
            process.wait()
            away = await fixture.call("every__echo", message="away")
            process = start()
            await until(lambda: is_answering(port), seconds=SLOW_SECONDS)
            back = await fixture.call("every__echo", message="back")
    finally:
        process.kill()
        process.wait()
    assert away.is_error
    assert away.effect in (Effect.UNKNOWN, Effect.NOT_STARTED)
    assert back.text == "Echo: back"


def is_answering(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
