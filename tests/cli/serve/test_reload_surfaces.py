"""SIGHUP and the chat surfaces: one comes, changes or goes, and neither the others nor what runs notice."""

# ruff: noqa: SIM117 - a model, a platform and a gateway are three things

import asyncio
from pathlib import Path

from tests.cli.command_line import gated, opened
from tests.cli.serve.test_reload import reloading, route
from tests.fakes.models.behaviours import echo, hanging, text
from tests.fakes.telegram_payloads import TOKEN
from tests.fakes.telegram_server import TelegramServer, telegram_server
from tests.waiting import at_most


def telegram(server: TelegramServer, more: str = "") -> str:
    table = f'[surfaces.telegram]\ntoken = "{TOKEN}"\napi_base = "{server.address}"\nallow = ["1"]\n'
    return f"{table}poll_seconds = 1\n{more}"


async def test_a_surface_that_comes_is_run_and_one_that_goes_is_stopped(tmp_path: Path) -> None:
    async with telegram_server() as bot, opened(tmp_path, [text(["hello Ann"]), echo()]) as hark:
        async with reloading(hark, route(hark.server)) as gateway:
            await bot.write("hi")
            await gateway.reload(route(hark.server), telegram(bot))
            await bot.until(lambda: "hello Ann" in bot.texts)
            await gateway.reload(route(hark.server), said="telegram is stopped")
            polls = bot.pollers
            await bot.write("nobody hears this now")
            await gateway.served.say("demo", "the API does not notice")
            await gateway.served.until_text("demo", "the API does not notice")
            assert bot.pollers == polls
            await gateway.reload(route(hark.server), telegram(bot))
            await hark.server.request(3)  # and it was not lost
    assert len(hark.server.requests) == 3


async def test_a_turn_goes_on_while_its_surface_is_changed_and_is_answered_once(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with telegram_server() as bot, opened(tmp_path, [gated(gate, "done at last")]) as hark:
        async with reloading(hark, route(hark.server), telegram(bot)) as gateway:
            await bot.write("a long task")
            await hark.server.request(1)
            await gateway.reload(route(hark.server), telegram(bot, 'receipts = "replies"'), said="telegram is stopped")
            gate.set()
            await bot.until(lambda: any("done at last" in words for words in bot.texts))
            await gateway.served.until_text("telegram:1", "well, done at last")
    assert len([words for words in bot.texts if "done at last" in words]) == 1
    assert len(hark.server.requests) == 1


async def test_a_surface_of_which_nothing_changed_is_not_touched(tmp_path: Path) -> None:
    async with telegram_server() as bot, opened(tmp_path, [echo()]) as hark:
        async with reloading(hark, route(hark.server), telegram(bot)) as gateway:
            await bot.until(lambda: bot.pollers > 0)
            assert "telegram is stopped" not in await gateway.reload(
                route(hark.server), telegram(bot), "[limits]\nsteps = 4"
            )
            await bot.write("hi")
            await bot.until(lambda: "hi" in bot.texts)
    assert bot.calls.count("getme") == 1


async def test_stop_words_follow(tmp_path: Path) -> None:
    async with telegram_server() as bot, opened(tmp_path, [hanging(2)]) as hark:
        async with reloading(hark, route(hark.server), telegram(bot)) as gateway:
            await bot.write("a long task")
            await hark.server.request(1)
            await gateway.reload(route(hark.server), telegram(bot), '[delivery]\nstop_words = ["enough"]')
            await bot.write("Enough!")
            await asyncio.wait_for(hark.server.requests[0].left.wait(), at_most(10))
    assert len(hark.server.requests) == 1


async def test_a_surface_whose_settings_are_wrong_changes_nothing(tmp_path: Path) -> None:
    async with telegram_server() as bot, opened(tmp_path, [echo()]) as hark:
        async with reloading(hark, route(hark.server), telegram(bot)) as gateway:
            broken = telegram(bot, 'receipts = "shouting"')
            told = await gateway.reload(route(hark.server), broken, said="the old ones stay")
            assert "surfaces.telegram" in told
            await bot.write("still there?")
            await bot.until(lambda: "still there?" in bot.texts)
