"""A misconfigured model: each message fails immediately, and no process, memory or CPU time is wasted."""

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
from hark.engine.turn.retry import RetryBudget
from hark.protocol.outcomes import Failed
from tests.cli.command_line import Hark, open_hark
from tests.cli.serve.test_reload_surfaces import telegram_toml
from tests.fakes.models.behaviours import Exchange, failing, text
from tests.fakes.models.server import ModelServer
from tests.fakes.telegram_server import TelegramServer, telegram_server
from tests.mcp.mcp_fixture import small_server_settings

WARM_UP_MESSAGES = 30  # until everything that is loaded once is loaded
MESSAGES = 100
CPU_SECONDS = 0.02  # per message: four times the expected time, for a busy or slow machine

# Runs Hark without the pauses between retries, which other tests check.
PROGRAM_WITHOUT_PAUSES = """
import sys
from hark.cli.main import main
from hark.engine.turn.retry import RetryBudget

async def pause(budget, seconds):
    pass

RetryBudget.pause = pause
sys.exit(main())
"""


class Gateway:
    """A client for one session of a running `hark serve`."""

    def __init__(self, client: aiohttp.ClientSession, pid: int) -> None:
        self.client = client
        self._pid = pid

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def say(self, text: str) -> None:
        async with self.client.post("/api/sessions/demo/messages", json={"text": text}) as response:
            assert response.status == 202, await response.text()

    @asynccontextmanager
    async def turn_outcomes(self) -> AsyncGenerator[AsyncIterator[dict[str, Any]]]:
        """Yield an iterator over the outcomes of the turns that end while the context is open."""

        async def outcomes() -> AsyncIterator[dict[str, Any]]:
            async for line in response.content:
                if line.startswith(b"data: ") and (event := json.loads(line[6:]))["type"] == "turn.ended":
                    yield event["outcome"]

        async with self.client.get("/api/sessions/demo/events") as response:
            yield outcomes()


@asynccontextmanager
async def serve_gateway(hark: Hark, settings: str) -> AsyncGenerator[Gateway]:
    (hark.home / "config.toml").write_text(settings)
    running = await hark.start_python("-c", PROGRAM_WITHOUT_PAUSES, "serve", "--port", "0")
    try:
        base = (await running.wait_for_line("serving on")).rpartition(" ")[2].strip()
        async with aiohttp.ClientSession(base, timeout=aiohttp.ClientTimeout(60)) as client:
            yield Gateway(client, running.process.pid)
    finally:
        if running.process.returncode is None:
            running.process.kill()
        await running.wait_for_end()


def settings_toml(base_url: str, notes: Path) -> str:
    return f'[[routes]]\nname = "main"\nbase_url = "{base_url}"\nmodel = "fake"\n{mcp_server_toml(notes)}'


def mcp_server_toml(notes: Path) -> str:
    """Return the settings for an MCP server that records each of its starts."""
    server = small_server_settings(env={"NOTES": str(notes)})
    table = "".join(f"{key} = {json.dumps(value)}\n" for key, value in server.items() if key != "env")
    return f"[mcp.servers.one]\n{table}[mcp.servers.one.env]\nNOTES = {json.dumps(str(notes))}\n"


@pytest.mark.parametrize("status", [401, 404, None])
async def test_failing_turns_use_little_cpu_and_start_mcp_servers_only_once(tmp_path: Path, status: int | None) -> None:
    count = WARM_UP_MESSAGES + MESSAGES
    async with open_hark(tmp_path, [failing(status)] * count if status else []) as hark:
        url = hark.server.base_url if status else "http://127.0.0.1:9/v1"
        notes = tmp_path / "notes"
        async with serve_gateway(hark, settings_toml(url, notes)) as served, served.turn_outcomes() as ends:
            outcomes: list[dict[str, Any]] = []
            before = 0.0
            for number in range(count):
                if number == WARM_UP_MESSAGES:
                    before = served.cpu_seconds
                await served.say(f"message {number}")
                outcomes.append(await anext(ends))
            spent = (served.cpu_seconds - before) / MESSAGES
            assert {outcome["type"] for outcome in outcomes} == {"failed"}
            assert len({outcome["error"]["code"] for outcome in outcomes}) == 1
        assert notes.read_text().count("started") == 1
        assert len(hark.server.requests) == (count if status else 0)
    assert spent < CPU_SECONDS, f"{spent * 1000:.1f} ms of CPU for each message"


async def skip_pause(_: RetryBudget, seconds: float) -> None:
    """Replace the pause before a retry."""


@pytest.mark.parametrize("is_reached", [True, False], ids=["refused", "no server"])
async def test_a_failed_turn_leaves_no_reference_cycles(
    tmp_path: Path, is_reached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RetryBudget, "pause", skip_pause)
    async with ModelServer([failing(401)] * 20) as server:
        url = server.base_url if is_reached else "http://127.0.0.1:9/v1"
        async with agent_on(home=tmp_path, workspace=tmp_path, routes=[{"base_url": url, "model": "fake"}]) as agent:
            session = agent.session("demo")
            garbage: list[Any] = []
            for number in range(6):
                if number == 3:  # everything that is loaded once is loaded
                    gc.collect()
                    gc.disable()
                await session.say(f"message {number}")
                assert isinstance(await session.idle(), Failed)
            try:
                gc.set_debug(gc.DEBUG_SAVEALL)
                gc.collect()
                garbage = [item for item in gc.garbage if isinstance(item, BaseException | FrameType | io.BytesIO)]
            finally:
                gc.set_debug(0)
                gc.garbage.clear()
                gc.enable()
    assert garbage == []


class FixableModels:
    """Two simulated models on one server. Each fails until its name is added to `fixed`."""

    def __init__(self) -> None:
        self.fixed: set[str] = set()

    async def play(self, exchange: Exchange) -> None:
        model = exchange.request.body["model"]
        await (text([f"{model} works"]) if model in self.fixed else failing(ERROR_CODES[model]))(exchange)


ERROR_CODES = {"first": 401, "second": 404}


def two_routes_toml(hark: Hark) -> str:
    """Return settings with two routes that both fail."""
    routes = (
        f'[[routes]]\nname = "{name}"\nbase_url = "{hark.server.base_url}"\nmodel = "{name}"\n' for name in ERROR_CODES
    )
    return "".join(routes)


def user_texts(hark: Hark) -> list[str]:
    """Return the user's messages in the last request."""
    messages = hark.server.requests[-1].body["messages"]
    texts = [message["content"] for message in messages if message["role"] == "user"]
    return [text for text in texts if not text.startswith("[This turn failed")]


async def test_a_repaired_route_that_the_user_chooses_gets_the_whole_conversation(tmp_path: Path) -> None:
    models = FixableModels()
    async with (
        open_hark(tmp_path, [models.play] * 50) as hark,
        serve_gateway(hark, two_routes_toml(hark)) as served,
        served.turn_outcomes() as ends,
    ):
        for number in range(5):
            await served.say(f"message {number}")
            end = await anext(ends)
            assert end["type"] == "failed"
            assert re.search(r"answered 40[14]: .*Check the ", end["error"]["message"]), end
        models.fixed.add("second")
        await served.say("/model second")  # the route is still in cool-down, but the user requests it
        await served.say("well now?")
        assert await anext(ends) == {"type": "completed", "text": "second works"}
        assert user_texts(hark) == [*(f"message {number}" for number in range(5)), "well now?"]


async def test_reset_tries_the_default_route_again_and_clears_the_conversation(tmp_path: Path) -> None:
    models = FixableModels()
    async with (
        open_hark(tmp_path, [models.play] * 50) as hark,
        serve_gateway(hark, two_routes_toml(hark)) as served,
        served.turn_outcomes() as ends,
    ):
        await served.say("/model second")
        for number in range(3):
            await served.say(f"message {number}")
            assert (await anext(ends))["type"] == "failed"
        models.fixed.add("first")
        await served.say("/reset")
        await served.say("well now?")
        assert await anext(ends) == {"type": "completed", "text": "first works"}
        assert user_texts(hark) == ["well now?"]


async def test_a_single_route_answers_as_soon_as_its_server_is_fixed(tmp_path: Path) -> None:
    models = FixableModels()
    async with (
        open_hark(tmp_path, [models.play] * 50) as hark,
        serve_gateway(hark, two_routes_toml(hark).partition('[[routes]]\nname = "second')[0]) as served,
        served.turn_outcomes() as ends,
    ):
        for number in range(3):
            await served.say(f"message {number}")
            assert (await anext(ends))["error"]["code"] == "bad_key"
        models.fixed.add("first")
        await served.say("well now?")
        assert await anext(ends) == {"type": "completed", "text": "first works"}
        assert user_texts(hark) == ["message 0", "message 1", "message 2", "well now?"]


async def test_a_chat_shows_each_error_and_works_again_after_a_command(tmp_path: Path) -> None:
    models, notes = FixableModels(), tmp_path / "notes"
    async with telegram_server() as bot, open_hark(tmp_path, [models.play] * 50) as hark:
        settings = two_routes_toml(hark) + mcp_server_toml(notes) + telegram_toml(bot)
        async with serve_gateway(hark, settings):
            for number in range(5):
                await bot.write(f"message {number}")
                await bot.until(lambda count=number + 1: len(error_texts(bot)) == count)
            models.fixed.add("second")
            await bot.write("/model second")
            await bot.until(lambda: any("Switched to second" in shown for shown in bot.texts))
            await bot.write("well now?")
            await bot.until(lambda: "second works" in bot.texts)
            assert user_texts(hark) == [*(f"message {number}" for number in range(5)), "well now?"]
            models.fixed = {"first"}
            await bot.write("/reset")
            await bot.until(lambda: any("Conversation cleared" in shown for shown in bot.texts))
            await bot.write("and now?")
            await bot.until(lambda: "first works" in bot.texts)
            assert user_texts(hark) == ["and now?"]
    assert len(error_texts(bot)) == 5
    assert notes.read_text().count("started") == 1


def error_texts(bot: TelegramServer) -> list[str]:
    """Return the error messages in the chat. Each says what happened, why, and how to fix it."""
    return [shown for shown in bot.texts if re.search(r"answered 40[14]: .*Check the ", shown)]


async def test_a_terminal_shows_each_error_and_works_again_after_a_command(tmp_path: Path) -> None:
    models = FixableModels()
    async with open_hark(tmp_path, [models.play] * 50) as hark:
        (hark.home / "config.toml").write_text(two_routes_toml(hark))
        running = await hark.start("--plain")
        for number in range(3):
            running.type(f"message {number}\n")
            await running.wait_for_line("answered 40")
        models.fixed.add("second")
        running.type("/model second\nwell now?\n")
        await running.wait_for_line("second works")
        assert (await running.wait_for_end()).code == 0
        assert user_texts(hark) == ["message 0", "message 1", "message 2", "well now?"]
