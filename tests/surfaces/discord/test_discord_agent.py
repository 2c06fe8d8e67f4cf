"""A complete conversation on Discord: a real agent, the surface, discord.py and a fake Discord server on a socket."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

import hark
from hark.app.pairing import PairingFile
from hark.cli.serve.chat_surfaces import chat_services
from hark.protocol.messages import UserMessage
from hark.providers.scripted import Hang, ScriptedProvider, ScriptedReply
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.platform import Platform
from hark.surfaces.chat.sender_policy import SenderPolicy
from hark.surfaces.discord.platform import DiscordSettings
from hark.surfaces.discord.surface import DiscordSurface
from tests.fakes.discord_payloads import BEN, GENERAL, ROBOT, THREAD
from tests.fakes.discord_server import TOKEN, DiscordServer


@asynccontextmanager
async def discord_agent(
    home: Path, script: Sequence[ScriptedReply], server: DiscordServer | None = None
) -> AsyncGenerator[tuple[DiscordServer, ScriptedProvider]]:
    """Run a real agent on a fake Discord server. The user Ann is on the allow-list."""
    provider = ScriptedProvider(script)

    async with (
        (server or DiscordServer()).serving() as server,
        hark.open(home=home, workspace=home, routes=[{"provider": provider}]) as agent,
    ):
        settings = DiscordSettings(api_base=server.base, allow=("1001",))
        surface = DiscordSurface(settings, TOKEN, home / "discord.json")
        ledger = SqliteChatLedger(home / "gateway.db")

        senders = SenderPolicy("discord", settings.allow, PairingFile(home / "pairing.json"), settings.per_minute)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Platform(surface, settings, senders, chat_services(agent, ledger)).run)
            await server.until(lambda: server.gateway.is_ready)
            yield server, provider
            tasks.cancel_scope.cancel()
        await ledger.close()


async def test_a_reply_streams_and_its_stop_button_stops_the_turn(tmp_path: Path) -> None:
    hang = Hang()
    async with discord_agent(tmp_path, [["half of it ", hang], ["and **that**"]]) as (server, _):
        first = await server.write("go")
        await hang.reached.wait()
        await server.until(lambda: any(one["components"] for one in server.bot_messages))
        assert server.bot_texts == ["half of it ▌"]
        await server.press(server.bot_messages[-1], "Stop")
        await server.until(lambda: server.bot_texts == ["half of it\n\n⏹ stopped"])
        assert hang.closed.is_set()
        assert server.bot_messages[-1]["components"] == []
        await server.write("continue")
        await server.until(lambda: server.bot_texts[1:] == ["and **that**"])
        await server.until(lambda: (first, "👀") in server.reactions)
        await server.until(lambda: bool(server.acks))


async def test_a_thread_has_its_own_session_and_unknown_senders_only_receive_a_pairing_code(tmp_path: Path) -> None:
    async with discord_agent(tmp_path, [["one"], ["two"]]) as (server, provider):
        await server.write("<@9000> hi", GENERAL, mentions=[ROBOT])
        await server.until(lambda: server.bot_texts == ["one"])
        await server.write("<@9000> hello", THREAD, mentions=[ROBOT])
        await server.until(lambda: server.bot_texts == ["one", "two"])
        await server.write("<@9000> me too", THREAD, BEN, mentions=[ROBOT])
        await server.until(lambda: len(server.bot_texts) == 3)
    assert [one["channel_id"] for one in server.bot_messages] == [GENERAL, THREAD, THREAD]
    assert "hark pair approve" in server.bot_texts[-1]
    texts = [[each.text for each in request.messages if isinstance(each, UserMessage)] for request in provider.requests]
    assert texts == [["hi"], ["hello"]]


async def test_a_long_reply_is_split_into_messages_that_discord_accepts(tmp_path: Path) -> None:
    code = "\n".join(f"line {number} = {number}" for number in range(500))
    async with discord_agent(tmp_path, [[f"Look:\n```python\n{code}\n```\ndone"]]) as (server, _):
        await server.write("show me")
        await server.until(lambda: "done" in "".join(server.bot_texts) and "▌" not in "".join(server.bot_texts))
        texts = server.bot_texts
    assert len(texts) > 3
    assert all(text.count("```") == 2 for text in texts)
    assert "line 499 = 499" in texts[-1]


async def test_the_conversation_continues_after_a_restart(tmp_path: Path) -> None:
    server = DiscordServer()
    async with discord_agent(tmp_path, [["one"]], server):
        await server.write("first")
        await server.until(lambda: server.bot_texts == ["one"])
    await server.write("while you were away")
    async with discord_agent(tmp_path, [["two"]], server):
        await server.until(lambda: server.bot_texts == ["one", "two"])
    assert server.gateway.identified == 1
