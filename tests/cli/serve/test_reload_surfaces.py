"""SIGHUP and the chat surfaces: a surface is added, changed or removed without affecting others or running turns."""

# ruff: noqa: SIM117 - a model, a platform and a gateway are separate contexts

import asyncio
from pathlib import Path

from tests.cli.command_line import gated, open_hark
from tests.cli.serve.test_reload import route_toml, serve_reloadable
from tests.fakes.models.behaviours import echo, hanging, text
from tests.fakes.telegram_payloads import TOKEN
from tests.fakes.telegram_server import TelegramServer, telegram_server
from tests.waiting import at_most


def telegram_toml(server: TelegramServer, extra: str = "") -> str:
    table = f'[surfaces.telegram]\ntoken = "{TOKEN}"\napi_base = "{server.address}"\nallow = ["1"]\n'
    return f"{table}poll_seconds = 1\n{extra}"


async def test_an_added_surface_is_started_and_a_removed_one_is_stopped(tmp_path: Path) -> None:
    async with telegram_server() as bot, open_hark(tmp_path, [text(["hello Ann"]), echo()]) as hark:
        async with serve_reloadable(hark, route_toml(hark.server)) as gateway:
            await bot.write("hi")
            await gateway.reload(route_toml(hark.server), telegram_toml(bot))
            await bot.until(lambda: "hello Ann" in bot.texts)
            await gateway.reload(route_toml(hark.server), expected="telegram stopped")
            polls = bot.pollers
            await bot.write("not received for now")
            await gateway.served.say("demo", "the API is not affected")
            await gateway.served.until_text("demo", "the API is not affected")
            assert bot.pollers == polls
            await gateway.reload(route_toml(hark.server), telegram_toml(bot))
            await hark.server.request(3)  # the message was not lost
    assert len(hark.server.requests) == 3


async def test_a_turn_continues_while_its_surface_is_reconfigured_and_its_reply_is_sent_once(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with telegram_server() as bot, open_hark(tmp_path, [gated(gate, "done at last")]) as hark:
        async with serve_reloadable(hark, route_toml(hark.server), telegram_toml(bot)) as gateway:
            await bot.write("a long task")
            await hark.server.request(1)
            await gateway.reload(
                route_toml(hark.server), telegram_toml(bot, 'receipts = "replies"'), expected="telegram stopped"
            )
            gate.set()
            await bot.until(lambda: any("done at last" in shown for shown in bot.texts))
            await gateway.served.until_text("telegram:1", "well, done at last")
    assert len([shown for shown in bot.texts if "done at last" in shown]) == 1
    assert len(hark.server.requests) == 1


async def test_a_surface_with_unchanged_settings_is_not_restarted(tmp_path: Path) -> None:
    async with telegram_server() as bot, open_hark(tmp_path, [echo()]) as hark:
        async with serve_reloadable(hark, route_toml(hark.server), telegram_toml(bot)) as gateway:
            await bot.until(lambda: bot.pollers > 0)
            assert "telegram stopped" not in await gateway.reload(
                route_toml(hark.server), telegram_toml(bot), "[limits]\nsteps = 4"
            )
            await bot.write("hi")
            await bot.until(lambda: "hi" in bot.texts)
    assert bot.calls.count("getme") == 1


async def test_reloaded_stop_words_take_effect_immediately(tmp_path: Path) -> None:
    async with telegram_server() as bot, open_hark(tmp_path, [hanging(2)]) as hark:
        async with serve_reloadable(hark, route_toml(hark.server), telegram_toml(bot)) as gateway:
            await bot.write("a long task")
            await hark.server.request(1)
            await gateway.reload(route_toml(hark.server), telegram_toml(bot), '[delivery]\nstop_words = ["enough"]')
            await bot.write("Enough!")
            await asyncio.wait_for(hark.server.requests[0].disconnected.wait(), at_most(10))
    assert len(hark.server.requests) == 1


async def test_a_reload_with_invalid_surface_settings_changes_nothing(tmp_path: Path) -> None:
    async with telegram_server() as bot, open_hark(tmp_path, [echo()]) as hark:
        async with serve_reloadable(hark, route_toml(hark.server), telegram_toml(bot)) as gateway:
            broken = telegram_toml(bot, 'receipts = "shouting"')
            log = await gateway.reload(route_toml(hark.server), broken, expected="the previous settings stay")
            assert "surfaces.telegram" in log
            await bot.write("still there?")
            await bot.until(lambda: "still there?" in bot.texts)
