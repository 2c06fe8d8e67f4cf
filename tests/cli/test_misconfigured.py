"""A model that is set up wrongly: each message gets its error at once, and nothing is started, spent or piled up."""

import gc
import io
import json
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import aiohttp
import pytest

from hark import open as agent_on
from hark.protocol.outcomes import Failed
from tests.cli.command_line import Hark, opened
from tests.cli.serve.test_reload_surfaces import telegram
from tests.fakes.models.behaviours import Exchange, failing, text
from tests.fakes.models.server import ModelServer
from tests.fakes.telegram_server import TelegramServer, telegram_server
from tests.mcp.mcp_fixture import small

WARM = 30  # until what is loaded once is loaded
MESSAGES = 100
CPU_SECONDS = 0.02  # of each message: four times what it may be, for a machine that is busy or slow


class Gateway:
    """`hark serve`, and one chat in it."""

    def __init__(self, client: aiohttp.ClientSession, pid: int) -> None:
        self.client = client
        self._pid = pid

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def say(self, words: str) -> None:
        async with self.client.post("/api/sessions/demo/messages", json={"text": words}) as response:
            assert response.status == 202, await response.text()

    @asynccontextmanager
    async def ends(self) -> AsyncGenerator[AsyncIterator[dict[str, Any]]]:
        """The ends of all turns that begin from now on."""

        async def outcomes() -> AsyncIterator[dict[str, Any]]:
            async for line in response.content:
                if line.startswith(b"data: ") and (event := json.loads(line[6:]))["type"] == "turn.ended":
                    yield event["outcome"]

        async with self.client.get("/api/sessions/demo/events") as response:
            yield outcomes()


@asynccontextmanager
async def gateway(hark: Hark, settings: str) -> AsyncGenerator[Gateway]:
    (hark.home / "config.toml").write_text(settings)
    running = await hark.start("serve", "--port", "0")
    try:
        base = (await running.until("serving on")).rpartition(" ")[2].strip()
        async with aiohttp.ClientSession(base, timeout=aiohttp.ClientTimeout(60)) as client:
            yield Gateway(client, running.process.pid)
    finally:
        if running.process.returncode is None:
            running.process.kill()
        await running.end()


def settings(base_url: str, notes: Path) -> str:
    return f'[[routes]]\nname = "main"\nbase_url = "{base_url}"\nmodel = "fake"\n{mcp_server(notes)}'


def mcp_server(notes: Path) -> str:
    """Return the settings of one that notes each of its starts."""
    server = small(env={"NOTES": str(notes)})
    table = "".join(f"{key} = {json.dumps(value)}\n" for key, value in server.items() if key != "env")
    return f"[mcp.servers.one]\n{table}[mcp.servers.one.env]\nNOTES = {json.dumps(str(notes))}\n"


@pytest.mark.parametrize("status", [401, 404, None])
async def test_each_message_gets_its_error_at_no_cost_and_mcp_servers_start_once(
    tmp_path: Path, status: int | None
) -> None:
    count = WARM + MESSAGES
    async with opened(tmp_path, [failing(status)] * count if status else []) as hark:
        url = hark.server.base_url if status else "http://127.0.0.1:9/v1"
        notes = tmp_path / "notes"
        async with gateway(hark, settings(url, notes)) as served, served.ends() as ends:
            outcomes: list[dict[str, Any]] = []
            before = 0.0
            for number in range(count):
                if number == WARM:
                    before = served.cpu_seconds
                await served.say(f"message {number}")
                outcomes.append(await anext(ends))
            spent = (served.cpu_seconds - before) / MESSAGES
            assert {outcome["type"] for outcome in outcomes} == {"failed"}
            assert len({outcome["error"]["code"] for outcome in outcomes}) == 1
        assert notes.read_text().count("started") == 1
        assert len(hark.server.requests) == (count if status else 0)
    assert spent < CPU_SECONDS, f"{spent * 1000:.1f} ms of CPU for each message"


@pytest.mark.parametrize("is_reached", [True, False], ids=["refused", "nobody listens"])
async def test_a_failed_turn_leaves_no_garbage(tmp_path: Path, is_reached: bool) -> None:
    async with ModelServer([failing(401)] * 20) as server:
        url = server.base_url if is_reached else "http://127.0.0.1:9/v1"
        async with agent_on(home=tmp_path, workspace=tmp_path, routes=[{"base_url": url, "model": "fake"}]) as agent:
            session = agent.session("demo")
            left: list[Any] = []
            for number in range(6):
                if number == 3:  # what is loaded once is loaded
                    gc.collect()
                    gc.disable()
                await session.say(f"message {number}")
                assert isinstance(await session.idle(), Failed)
            try:
                gc.set_debug(gc.DEBUG_SAVEALL)
                gc.collect()
                left = [one for one in gc.garbage if isinstance(one, BaseException | FrameType | io.BytesIO)]
            finally:
                gc.set_debug(0)
                gc.garbage.clear()
                gc.enable()
    assert left == []


class Models:
    """Two models on one server: all of them are wrong until they are mended."""

    def __init__(self) -> None:
        self.mended: set[str] = set()

    async def play(self, exchange: Exchange) -> None:
        model = exchange.seen.body["model"]
        await (text([f"{model} is well"]) if model in self.mended else failing(WRONG[model]))(exchange)


WRONG = {"first": 401, "second": 404}


def two_routes(hark: Hark) -> str:
    """Return settings whose both routes are wrong."""
    routes = (f'[[routes]]\nname = "{name}"\nbase_url = "{hark.server.base_url}"\nmodel = "{name}"\n' for name in WRONG)
    return "".join(routes)


def said(hark: Hark) -> list[str]:
    """Return the person's words in the last request."""
    messages = hark.server.requests[-1].body["messages"]
    words = [one["content"] for one in messages if one["role"] == "user"]
    return [one for one in words if not one.startswith("[This turn failed")]


async def test_choosing_a_route_that_was_mended_answers_with_all_that_was_said(tmp_path: Path) -> None:
    models = Models()
    async with (
        opened(tmp_path, [models.play] * 50) as hark,
        gateway(hark, two_routes(hark)) as served,
        served.ends() as ends,
    ):
        for number in range(5):
            await served.say(f"message {number}")
            end = await anext(ends)
            assert end["type"] == "failed"
            assert re.search(r"answered 40[14]: .*Check the ", end["error"]["message"]), end
        models.mended.add("second")
        await served.say("/model second")  # it rests still, but somebody wants it
        await served.say("well now?")
        assert await anext(ends) == {"type": "completed", "text": "second is well"}
        assert said(hark) == [*(f"message {number}" for number in range(5)), "well now?"]


async def test_a_reset_tries_the_usual_route_anew_and_forgets_what_was_said(tmp_path: Path) -> None:
    models = Models()
    async with (
        opened(tmp_path, [models.play] * 50) as hark,
        gateway(hark, two_routes(hark)) as served,
        served.ends() as ends,
    ):
        await served.say("/model second")
        for number in range(3):
            await served.say(f"message {number}")
            assert (await anext(ends))["type"] == "failed"
        models.mended.add("first")
        await served.say("/reset")
        await served.say("well now?")
        assert await anext(ends) == {"type": "completed", "text": "first is well"}
        assert said(hark) == ["well now?"]


async def test_a_route_that_stands_alone_answers_as_soon_as_its_server_is_mended(tmp_path: Path) -> None:
    models = Models()
    async with (
        opened(tmp_path, [models.play] * 50) as hark,
        gateway(hark, two_routes(hark).partition('[[routes]]\nname = "second')[0]) as served,
        served.ends() as ends,
    ):
        for number in range(3):
            await served.say(f"message {number}")
            assert (await anext(ends))["error"]["code"] == "bad_key"
        models.mended.add("first")
        await served.say("well now?")
        assert await anext(ends) == {"type": "completed", "text": "first is well"}
        assert said(hark) == ["message 0", "message 1", "message 2", "well now?"]


async def test_a_chat_gets_each_error_and_is_mended_by_a_command(tmp_path: Path) -> None:
    models, notes = Models(), tmp_path / "notes"
    async with telegram_server() as bot, opened(tmp_path, [models.play] * 50) as hark:
        settings = two_routes(hark) + mcp_server(notes) + telegram(bot)
        async with gateway(hark, settings):
            for number in range(5):
                await bot.write(f"message {number}")
                await bot.until(lambda count=number + 1: len(errors(bot)) == count)
            models.mended.add("second")
            await bot.write("/model second")
            await bot.until(lambda: any("second serves first" in one for one in bot.texts))
            await bot.write("well now?")
            await bot.until(lambda: "second is well" in bot.texts)
            assert said(hark) == [*(f"message {number}" for number in range(5)), "well now?"]
            models.mended = {"first"}
            await bot.write("/reset")
            await bot.until(lambda: any("starts afresh" in one for one in bot.texts))
            await bot.write("and now?")
            await bot.until(lambda: "first is well" in bot.texts)
            assert said(hark) == ["and now?"]
    assert len(errors(bot)) == 5
    assert notes.read_text().count("started") == 1


def errors(bot: TelegramServer) -> list[str]:
    """Return what the chat shows of failed turns: each says what happened, why, and what to do."""
    return [one for one in bot.texts if re.search(r"answered 40[14]: .*Check the ", one)]


async def test_a_terminal_gets_each_error_and_is_mended_by_a_command(tmp_path: Path) -> None:
    models = Models()
    async with opened(tmp_path, [models.play] * 50) as hark:
        (hark.home / "config.toml").write_text(two_routes(hark))
        running = await hark.start("--plain")
        for number in range(3):
            running.type(f"message {number}\n")
            await running.until("answered 40")
        models.mended.add("second")
        running.type("/model second\nwell now?\n")
        await running.until("second is well")
        assert (await running.end()).code == 0
        assert said(hark) == ["message 0", "message 1", "message 2", "well now?"]
