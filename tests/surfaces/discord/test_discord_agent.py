"""A whole conversation on Discord: a real agent, the platform, discord.py, and Discord's protocol on a socket."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

import hark
from hark.app.pairing import Pairing
from hark.cli.serve.chat_surfaces import house_of
from hark.protocol.messages import UserMessage
from hark.providers.scripted import Hang, Reply, ScriptedProvider
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.people import People
from hark.surfaces.chat.platform import Platform
from hark.surfaces.discord.platform import DiscordSettings
from hark.surfaces.discord.surface import DiscordSurface
from tests.fakes.discord_payloads import BEN, GENERAL, ROBOT, THREAD
from tests.fakes.discord_server import TOKEN, DiscordServer


@asynccontextmanager
async def talking(
    home: Path, script: Sequence[Reply], server: DiscordServer | None = None
) -> AsyncGenerator[tuple[DiscordServer, ScriptedProvider]]:
    """Discord, whose Ann is let in by the settings."""
    provider = ScriptedProvider(script)

    async with (
        (server or DiscordServer()).serving() as server,
        hark.open(home=home, workspace=home, routes=[{"provider": provider}]) as agent,
    ):
        settings = DiscordSettings(api_base=server.base, allow=("1001",))
        surface = DiscordSurface(settings, TOKEN, home / "discord.json")
        ledger = SqliteChatLedger(home / "gateway.db")

        people = People("discord", settings.allow, Pairing(home / "pairing.json"), settings.per_minute)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Platform(surface, settings, people, house_of(agent, ledger)).run)
            await server.until(lambda: server.gateway.is_ready)
            yield server, provider
            tasks.cancel_scope.cancel()
        await ledger.close()


async def test_a_reply_streams_and_its_stop_button_stops_it(tmp_path: Path) -> None:
    hang = Hang()
    async with talking(tmp_path, [["half of it ", hang], ["and **that**"]]) as (server, _):
        first = await server.write("go")
        await hang.reached.wait()
        await server.until(lambda: any(one["components"] for one in server.ours))
        assert server.texts == ["half of it ▌"]
        await server.press(server.ours[-1], "Stop")
        await server.until(lambda: server.texts == ["half of it\n\n⏹ stopped"])
        assert hang.closed.is_set()
        assert server.ours[-1]["components"] == []
        await server.write("go on")
        await server.until(lambda: server.texts[1:] == ["and **that**"])
        await server.until(lambda: (first, "👀") in server.signs)
        await server.until(lambda: bool(server.acks))


async def test_a_thread_has_its_own_session_and_strangers_get_a_code_only(tmp_path: Path) -> None:
    async with talking(tmp_path, [["one"], ["two"]]) as (server, provider):
        await server.write("<@9000> hi", GENERAL, mentions=[ROBOT])
        await server.until(lambda: server.texts == ["one"])
        await server.write("<@9000> hello", THREAD, mentions=[ROBOT])
        await server.until(lambda: server.texts == ["one", "two"])
        await server.write("<@9000> me too", THREAD, BEN, mentions=[ROBOT])
        await server.until(lambda: len(server.texts) == 3)
    assert [one["channel_id"] for one in server.ours] == [GENERAL, THREAD, THREAD]
    assert "hark pair approve" in server.texts[-1]
    said = [[each.text for each in request.messages if isinstance(each, UserMessage)] for request in provider.requests]
    assert said == [["hi"], ["hello"]]


async def test_a_long_reply_comes_in_messages_that_discord_takes(tmp_path: Path) -> None:
    code = "\n".join(f"line {number} = {number}" for number in range(500))
    async with talking(tmp_path, [[f"Look:\n```python\n{code}\n```\ndone"]]) as (server, _):
        await server.write("show me")
        await server.until(lambda: "done" in "".join(server.texts) and "▌" not in "".join(server.texts))
        texts = server.texts
    assert len(texts) > 3
    assert all(text.count("```") == 2 for text in texts)
    assert "line 499 = 499" in texts[-1]


async def test_after_a_restart_the_conversation_goes_on(tmp_path: Path) -> None:
    server = DiscordServer()
    async with talking(tmp_path, [["one"]], server):
        await server.write("first")
        await server.until(lambda: server.texts == ["one"])
    await server.write("while you were away")
    async with talking(tmp_path, [["two"]], server):
        await server.until(lambda: server.texts == ["one", "two"])
    assert server.gateway.identified == 1
