"""Sets a world up: who sits where, and the servers around them."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.discord_payloads import DIRECT, GENERAL
from tests.fakes.discord_server import TOKEN as DISCORD_TOKEN
from tests.fakes.slack_payloads import APP_TOKEN, BOT_TOKEN
from tests.fakes.telegram_payloads import TOKEN
from tests.fakes.webhook_program import SECRET
from tests.gateway_kills.environment import Plan, World
from tests.gateway_kills.expectations import Book
from tests.gateway_kills.gateway import Addresses, Gateway, settings
from tests.gateway_kills.kill_points import KillPoint
from tests.gateway_kills.model import Model
from tests.gateway_kills.person import Person
from tests.gateway_kills.platforms.api import ApiClient, ApiFixture
from tests.gateway_kills.platforms.discord import DiscordFixture, FakeDiscord, fake_discord
from tests.gateway_kills.platforms.platform import PlatformFixture
from tests.gateway_kills.platforms.slack import SlackFixture, fake_slack
from tests.gateway_kills.platforms.telegram import FIRST_CHAT, FIRST_GROUP, FakeTelegram, TelegramFixture, fake_telegram
from tests.gateway_kills.platforms.webhook import WebhookFixture, running_programs
from tests.gateway_kills.speech import running_speech

IN_A_GROUP = 3  # people


@asynccontextmanager
async def opened(folder: Path, plan: Plan) -> AsyncGenerator[World]:
    """Set the world up."""
    book, kill_point = Book(), KillPoint()
    home = folder / "hark"
    home.mkdir(parents=True)
    share = Share.of(plan.chats)
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(Model(book, kill_point))
        speech, hearing = await stack.enter_async_context(running_speech(book, kill_point, plan.seed))
        telegram = await stack.enter_async_context(fake_telegram(share.telegram, share.groups, plan.seed, kill_point))
        slack = await stack.enter_async_context(fake_slack(share.slack, plan.seed, kill_point))
        discord = await stack.enter_async_context(fake_discord(share.discord, plan.seed, kill_point))
        programs = await stack.enter_async_context(running_programs(plan.seed, kill_point))
        at = Addresses(telegram.address, slack.url, discord.base, programs.url, model.address, hearing, _free_port())
        (home / "config.toml").write_text(settings(at))
        client = ApiClient(f"http://127.0.0.1:{at.port}", plan.seed)
        stack.push_async_callback(client.close)
        secrets = {"FIRE_TELEGRAM": TOKEN, "FIRE_SLACK": BOT_TOKEN, "FIRE_SLACK_APP": APP_TOKEN}
        gateway = Gateway(home, secrets | {"FIRE_DISCORD": DISCORD_TOKEN, "FIRE_HOOK": SECRET})
        fixtures: list[PlatformFixture] = [*share.telegram_fixtures(telegram), *share.discord_fixtures(discord)]
        fixtures += [SlackFixture(slack, number) for number in range(share.slack)]
        fixtures += [WebhookFixture(programs, client, number) for number in range(share.programs)]
        fixtures += [ApiFixture(client, book, number) for number in range(share.api)]
        await stack.enter_async_context(
            _listening([fixture for fixture in fixtures if isinstance(fixture, ApiFixture)])
        )
        people = [Person(fixture, book, plan.seed + 100 + number) for number, fixture in enumerate(fixtures)]
        yield World(
            plan, home, book, model, speech, telegram, slack, discord, programs, client, gateway, kill_point, people
        )


@dataclass(frozen=True, slots=True)
class Share:
    """How many chats are where: of twenty, eight are Telegram's, five Slack's, four Discord's, and three programs'."""

    telegram: int
    groups: int
    discord: int
    slack: int
    programs: int
    api: int

    @staticmethod
    def of(chats: int) -> "Share":
        groups, discord, slack, programs, api = (max(1, chats * part // 100) for part in (6, 20, 25, 5, 10))
        telegram = max(1, chats - groups - discord - slack - programs - api)
        return Share(telegram, groups, discord, slack, programs, api)

    def telegram_fixtures(self, server: FakeTelegram) -> list[TelegramFixture]:
        alone = [FIRST_CHAT + number for number in range(self.telegram)]
        groups = [FIRST_GROUP - number for number in range(self.groups)]
        together = [TelegramFixture(server, group, FIRST_CHAT + who) for group in groups for who in range(IN_A_GROUP)]
        return [*(TelegramFixture(server, person, person) for person in alone), *together]

    def discord_fixtures(self, server: FakeDiscord) -> list[DiscordFixture]:
        """One of the chats is a channel, in which several people are."""
        alone = [DiscordFixture(server, number, f"{DIRECT}{number}") for number in range(self.discord - 1)]
        return [*alone, *(DiscordFixture(server, number, GENERAL) for number in range(IN_A_GROUP))]


@asynccontextmanager
async def _listening(fixtures: list[ApiFixture]) -> AsyncGenerator[None]:
    """Have the programs read along."""
    reading = [asyncio.create_task(fixture.stream.run()) for fixture in fixtures]
    try:
        yield
    finally:
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
