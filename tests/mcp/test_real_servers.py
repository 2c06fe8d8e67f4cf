"""The real servers of the world: listed, called, cut in mid-call, usable after, killed and back."""

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

from hark.mcp.auth import free_port
from hark.mcp.offers import ServerState
from hark.protocol.messages import Effect
from tests.mcp.mcp_fixture import Person, World, running
from tests.mcp.real import npm_server, pypi_server
from tests.tools.context import living
from tests.waiting import at_most, until

SLOW_SECONDS = 120.0  # programs of Node, on a busy machine
LONG = "every__trigger-long-running-operation"


@pytest.fixture(scope="session")
def everything() -> str:
    return npm_server("mcp-server-everything")


@pytest.fixture(scope="session")
def filesystem() -> str:
    return npm_server("mcp-server-filesystem")


async def cut_in_mid_call(world: World, is_begun: Callable[[], bool], name: str, **arguments: Any) -> None:
    """Cut a call that was begun, and see that it ends at once."""
    pids = {one.name: one.pid for one in world.servers.status()}
    call = asyncio.create_task(world.call(name, **arguments))
    await until(is_begun, seconds=SLOW_SECONDS)
    assert not call.done()
    began = time.perf_counter()
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled()
    assert time.perf_counter() - began < at_most(0.3)
    assert {one.name: one.pid for one in world.servers.status()} == pids, "a cut restarts nothing"


@asynccontextmanager
async def silent_site(asked: asyncio.Event) -> AsyncGenerator[str]:
    """A web site that takes requests and never answers."""

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(swallow, "127.0.0.1", 0) as listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"


async def test_git_is_called_killed_and_back(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(tmp_path)], check=True)  # noqa: ASYNC221
    async with running(tmp_path, git={"command": pypi_server("mcp-server-git")}) as world:
        assert "trunk" in (await world.call("git__git_status", repo_path=str(tmp_path))).text
        os.kill(world.pid("git"), signal.SIGKILL)
        await world.servers.reached(ServerState.WAITING)
        assert "trunk" in (await world.call("git__git_status", repo_path=str(tmp_path))).text
    assert living(world.cookie) == {}


async def test_fetch_is_cut_in_mid_call_and_usable_after(tmp_path: Path) -> None:
    settings = {"command": pypi_server("mcp-server-fetch"), "args": ["--ignore-robots-txt", "--allow-private-ips"]}
    asked = asyncio.Event()
    async with silent_site(asked) as site, running(tmp_path, fetch=settings) as world:
        assert "mcp_prompt" in [tool.spec.name for tool in world.servers.tools()]
        await cut_in_mid_call(world, asked.is_set, "fetch__fetch", url=site)
        output = await world.call("fetch__fetch", url="not an address")
    assert output.is_error
    assert living(world.cookie) == {}


async def test_everything_is_called_cut_asked_and_usable_after(tmp_path: Path, everything: str) -> None:
    person = Person(tmp_path, "Ada", "(leave out)", *(["(leave out)"] * 20))
    async with running(tmp_path, every={"command": everything}) as world:
        assert (await world.call("every__echo", message="hi")).text == "Echo: hi"
        assert (await world.call("every__get-tiny-image")).attachments[0].media_type == "image/png"
        await world.call(LONG, duration=0.2, steps=2)
        assert "1/2" in world.context.shown
        await cut_in_mid_call(world, lambda: "/300" in world.context.shown, LONG, duration=30, steps=300)
        assert (await world.call("every__echo", message="still")).text == "Echo: still"
        await until(
            lambda: "every__trigger-elicitation-request" in [t.spec.name for t in world.servers.tools()],
            seconds=SLOW_SECONDS,
        )
        asked = await world.call("every__trigger-elicitation-request", person)
        read = await world.call("mcp_resource", action="read", server="every", uri="demo://resource/dynamic/text/1")
    assert "Ada" in asked.text
    assert "Resource 1" in read.text
    assert living(world.cookie) == {}


async def test_the_filesystem_opens_what_its_arguments_name(tmp_path: Path, filesystem: str) -> None:
    home, open_folder = tmp_path / "home", tmp_path / "open"
    open_folder.mkdir()
    (open_folder / "note.txt").write_text("words")
    async with running(home, fs={"command": filesystem, "args": [str(open_folder)]}) as world:
        await until(lambda: "allowed directories from MCP roots" in world.log("fs"), seconds=SLOW_SECONDS)
        read = await world.call("fs__read_text_file", path=str(open_folder / "note.txt"))
        refused = await world.call("fs__read_text_file", path="/etc/hostname")
        is_changing = {tool.spec.name: tool.spec.is_changing for tool in world.servers.tools()}
    assert read.text == "words"
    assert refused.is_error
    assert (is_changing["fs__read_text_file"], is_changing["fs__write_file"]) == (False, True)


async def test_everything_over_http_is_cut_lost_and_back(tmp_path: Path, everything: str) -> None:
    port = free_port()

    def start() -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PORT": str(port)}
        quiet = subprocess.DEVNULL
        return subprocess.Popen([everything, "streamableHttp"], env=environment, stdout=quiet, stderr=quiet)

    process = start()
    try:
        await until(lambda: is_answering(port), seconds=SLOW_SECONDS)
        async with running(tmp_path, every={"url": f"http://127.0.0.1:{port}/mcp"}) as world:
            assert (await world.call("every__echo", message="hi")).text == "Echo: hi"
            await cut_in_mid_call(world, lambda: "/300" in world.context.shown, LONG, duration=30, steps=300)
            assert (await world.call("every__echo", message="still")).text == "Echo: still"
            process.kill()
            process.wait()
            away = await world.call("every__echo", message="away")
            process = start()
            await until(lambda: is_answering(port), seconds=SLOW_SECONDS)
            back = await world.call("every__echo", message="back")
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
