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
from tests.gateway_kills.kill_points import Trap
from tests.gateway_kills.model import Model
from tests.gateway_kills.person import Person
from tests.gateway_kills.platforms.api import ApiClient, ApiSeat
from tests.gateway_kills.platforms.discord import DiscordSeat, DiscordTown, discord_town
from tests.gateway_kills.platforms.platform import Seat
from tests.gateway_kills.platforms.slack import SlackSeat, slack_town
from tests.gateway_kills.platforms.telegram import FIRST_CHAT, FIRST_GROUP, TelegramSeat, TelegramTown, telegram_town
from tests.gateway_kills.platforms.webhook import WebhookSeat, running_programs
from tests.gateway_kills.speech import running_speech

IN_A_GROUP = 3  # people


@asynccontextmanager
async def opened(folder: Path, plan: Plan) -> AsyncGenerator[World]:
    """Set the world up."""
    book, trap = Book(), Trap()
    home = folder / "hark"
    home.mkdir(parents=True)
    share = Share.of(plan.chats)
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(Model(book, trap))
        speech, hearing = await stack.enter_async_context(running_speech(book, trap, plan.seed))
        telegram = await stack.enter_async_context(telegram_town(share.telegram, share.groups, plan.seed, trap))
        slack = await stack.enter_async_context(slack_town(share.slack, plan.seed, trap))
        discord = await stack.enter_async_context(discord_town(share.discord, plan.seed, trap))
        programs = await stack.enter_async_context(running_programs(plan.seed, trap))
        at = Addresses(telegram.address, slack.url, discord.base, programs.url, model.address, hearing, _free_port())
        (home / "config.toml").write_text(settings(at))
        client = ApiClient(f"http://127.0.0.1:{at.port}", plan.seed)
        stack.push_async_callback(client.close)
        secrets = {"FIRE_TELEGRAM": TOKEN, "FIRE_SLACK": BOT_TOKEN, "FIRE_SLACK_APP": APP_TOKEN}
        gateway = Gateway(home, secrets | {"FIRE_DISCORD": DISCORD_TOKEN, "FIRE_HOOK": SECRET})
        seats: list[Seat] = [*share.telegram_seats(telegram), *share.discord_seats(discord)]
        seats += [SlackSeat(slack, number) for number in range(share.slack)]
        seats += [WebhookSeat(programs, client, number) for number in range(share.programs)]
        seats += [ApiSeat(client, book, number) for number in range(share.api)]
        await stack.enter_async_context(_listening([seat for seat in seats if isinstance(seat, ApiSeat)]))
        people = [Person(seat, book, plan.seed + 100 + number) for number, seat in enumerate(seats)]
        yield World(plan, home, book, model, speech, telegram, slack, discord, programs, client, gateway, trap, people)


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

    def telegram_seats(self, town: TelegramTown) -> list[TelegramSeat]:
        alone = [FIRST_CHAT + number for number in range(self.telegram)]
        groups = [FIRST_GROUP - number for number in range(self.groups)]
        together = [TelegramSeat(town, group, FIRST_CHAT + who) for group in groups for who in range(IN_A_GROUP)]
        return [*(TelegramSeat(town, person, person) for person in alone), *together]

    def discord_seats(self, town: DiscordTown) -> list[DiscordSeat]:
        """One of the chats is a channel, in which several people are."""
        alone = [DiscordSeat(town, number, f"{DIRECT}{number}") for number in range(self.discord - 1)]
        return [*alone, *(DiscordSeat(town, number, GENERAL) for number in range(IN_A_GROUP))]


@asynccontextmanager
async def _listening(seats: list[ApiSeat]) -> AsyncGenerator[None]:
    """Have the programs read along."""
    reading = [asyncio.create_task(seat.stream.run()) for seat in seats]
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
