"""Sets up the environment: the users, their platforms and the servers."""

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
from tests.gateway_kills.environment import GatewayEnvironment, Plan
from tests.gateway_kills.expectations import Expectations
from tests.gateway_kills.gateway import Addresses, Gateway, render_config
from tests.gateway_kills.kill_points import KillPoint
from tests.gateway_kills.model import KillTestModel
from tests.gateway_kills.platforms.api import ApiClient, ApiFixture
from tests.gateway_kills.platforms.discord import DiscordFixture, FakeDiscord, fake_discord
from tests.gateway_kills.platforms.platform import PlatformFixture
from tests.gateway_kills.platforms.slack import SlackFixture, fake_slack
from tests.gateway_kills.platforms.telegram import FIRST_CHAT, FIRST_GROUP, FakeTelegram, TelegramFixture, fake_telegram
from tests.gateway_kills.platforms.webhook import WebhookFixture, run_programs
from tests.gateway_kills.speech import run_speech_server
from tests.gateway_kills.user import KillTestUser

GROUP_SIZE = 3  # users


@asynccontextmanager
async def open_environment(folder: Path, plan: Plan) -> AsyncGenerator[GatewayEnvironment]:
    """Set up the environment and yield it. Close it when the context exits."""
    expectations, kill_point = Expectations(), KillPoint()
    home = folder / "hark"
    home.mkdir(parents=True)
    chat_counts = ChatCounts.for_total(plan.chats)
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(KillTestModel(expectations, kill_point))
        speech, hearing = await stack.enter_async_context(run_speech_server(expectations, kill_point, plan.seed))
        telegram = await stack.enter_async_context(
            fake_telegram(chat_counts.telegram, chat_counts.groups, plan.seed, kill_point)
        )
        slack = await stack.enter_async_context(fake_slack(chat_counts.slack, plan.seed, kill_point))
        discord = await stack.enter_async_context(fake_discord(chat_counts.discord, plan.seed, kill_point))
        programs = await stack.enter_async_context(run_programs(plan.seed, kill_point))
        at = Addresses(telegram.address, slack.url, discord.base, programs.url, model.address, hearing, _free_port())
        (home / "config.toml").write_text(render_config(at))
        client = ApiClient(f"http://127.0.0.1:{at.port}", plan.seed)
        stack.push_async_callback(client.close)
        secrets = {"FIRE_TELEGRAM": TOKEN, "FIRE_SLACK": BOT_TOKEN, "FIRE_SLACK_APP": APP_TOKEN}
        gateway = Gateway(home, secrets | {"FIRE_DISCORD": DISCORD_TOKEN, "FIRE_HOOK": SECRET})
        fixtures: list[PlatformFixture] = [
            *chat_counts.telegram_fixtures(telegram),
            *chat_counts.discord_fixtures(discord),
        ]
        fixtures += [SlackFixture(slack, number) for number in range(chat_counts.slack)]
        fixtures += [WebhookFixture(programs, client, number) for number in range(chat_counts.programs)]
        fixtures += [ApiFixture(client, expectations, number) for number in range(chat_counts.api)]
        await stack.enter_async_context(
            _reading_events([fixture for fixture in fixtures if isinstance(fixture, ApiFixture)])
        )
        users = [
            KillTestUser(fixture, expectations, plan.seed + 100 + number) for number, fixture in enumerate(fixtures)
        ]
        yield GatewayEnvironment(
            plan,
            home,
            expectations,
            model,
            speech,
            telegram,
            slack,
            discord,
            programs,
            client,
            gateway,
            kill_point,
            users,
        )


@dataclass(frozen=True, slots=True)
class ChatCounts:
    """The number of chats per platform.

    Of twenty chats, eight are on Telegram, five on Slack and four on Discord. Three belong to programs.
    """

    telegram: int
    groups: int
    discord: int
    slack: int
    programs: int
    api: int

    @staticmethod
    def for_total(chats: int) -> "ChatCounts":
        groups, discord, slack, programs, api = (max(1, chats * part // 100) for part in (6, 20, 25, 5, 10))
        telegram = max(1, chats - groups - discord - slack - programs - api)
        return ChatCounts(telegram, groups, discord, slack, programs, api)

    def telegram_fixtures(self, server: FakeTelegram) -> list[TelegramFixture]:
        private_users = [FIRST_CHAT + number for number in range(self.telegram)]
        groups = [FIRST_GROUP - number for number in range(self.groups)]
        group_users = [
            TelegramFixture(server, group, FIRST_CHAT + who) for group in groups for who in range(GROUP_SIZE)
        ]
        return [*(TelegramFixture(server, person, person) for person in private_users), *group_users]

    def discord_fixtures(self, server: FakeDiscord) -> list[DiscordFixture]:
        """Return the simulated Discord users. One of their chats is a channel with several users."""
        direct_users = [DiscordFixture(server, number, f"{DIRECT}{number}") for number in range(self.discord - 1)]
        return [*direct_users, *(DiscordFixture(server, number, GENERAL) for number in range(GROUP_SIZE))]


@asynccontextmanager
async def _reading_events(fixtures: list[ApiFixture]) -> AsyncGenerator[None]:
    """Read the programs' events in the background."""
    reading = [asyncio.create_task(fixture.stream.run()) for fixture in fixtures]
    try:
        yield
    finally:
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)


def _free_port() -> int:
    with socket.socket() as free_socket:
        free_socket.bind(("127.0.0.1", 0))
        return int(free_socket.getsockname()[1])
