"""One seat for each platform, from which a test can play its people and its servers, all in the same words."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Protocol

import pytest

from hark.protocol.chat import Address, ChatSurface, Incoming
from hark.surfaces.discord.surface import DiscordSurface
from hark.surfaces.slack.surface import SlackSurface
from hark.surfaces.telegram.import_aiogram import load_library
from hark.surfaces.telegram.platform import TelegramSettings
from hark.surfaces.telegram.surface import Telegram
from tests.fakes import discord_server, slack_server, telegram_payloads, telegram_server, webhook_program
from tests.surfaces.discord.discord_fixture import HOME as DISCORD_HOME
from tests.surfaces.discord.discord_fixture import surface_for
from tests.surfaces.matrix.matrix_fixture import Person, home, matrix, person
from tests.surfaces.matrix.synapse import Account, Synapse
from tests.surfaces.slack.slack_fixture import DM, settings_for
from tests.surfaces.webhook.webhook_fixture import CI, Hooked, hooked
from tests.waiting import until

load_library()  # as the surface does: without it these imports build all the types there are, for seconds
import_module("hark.surfaces.telegram.receiving")  # and what it still takes is no test's
import_module("hark.surfaces.telegram.sending")

Check = Callable[[], bool]
LONG_SECONDS = 300


@dataclass
class Keeper:
    """Takes what is delivered. `tried` is all that came, `kept` what was taken; `gate` holds, `failing` refuses."""

    tried: list[Incoming] = field(default_factory=list[Incoming])
    kept: list[Incoming] = field(default_factory=list[Incoming])
    failing: list[Exception] = field(default_factory=list[Exception])
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def deliver(self, incoming: Incoming) -> None:
        self.tried.append(incoming)
        self.changed.set()
        await self.gate.wait()
        if self.failing:
            raise self.failing.pop(0)
        self.kept.append(incoming)
        self.changed.set()

    async def until(self, is_true: Check) -> None:
        await until(is_true, changed=self.changed, shows=lambda: (self.tried, self.kept))


class Seat(Protocol):
    """A platform with a person in it, and our surface at work there."""

    surface: ChatSurface
    address: Address
    keeper: Keeper

    async def write(self, text: str) -> None:
        """A person writes; returns when the platform begins to deliver it."""
        ...

    async def again(self) -> None:
        """Have the last message delivered once more, where the platform needs somebody to do so."""
        ...

    async def is_acked(self) -> bool:
        """Tell whether the platform counts the last message as delivered."""
        ...

    async def acked(self) -> None:
        """Return when it does."""
        ...

    async def shown(self, count: int) -> list[str]:
        """Return our messages as the person sees them, when there are so many."""
        ...

    async def press(self, label: str) -> None:
        """Press the button with these words."""
        ...

    async def closed_chat(self) -> Address:
        """Return an address that is closed to us."""
        ...

    def slow_down(self) -> None:
        """Have the next message refused with a wish to wait for LONG_SECONDS."""
        ...

    def lose_answer(self) -> None:
        """Have the next message taken, and its answer lost."""
        ...


@asynccontextmanager
async def kept_running(surface: ChatSurface, keeper: Keeper) -> AsyncGenerator[None]:
    """Run it as the gateway does: what ends with an error is run again."""

    async def run() -> None:
        while True:
            with suppress(Exception):
                await surface.run(keeper.deliver)
            await asyncio.sleep(0.01)

    running = asyncio.create_task(run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])


class TelegramSeat:
    surface: ChatSurface

    def __init__(self, server: telegram_server.TelegramServer, surface: Telegram, keeper: Keeper) -> None:
        self.server, self.surface, self.keeper = server, surface, keeper
        self.address = Address("telegram", "1")
        self._update = 0

    async def write(self, text: str) -> None:
        await self.server.write(text)
        self._update = self.server.updates[-1]["update_id"]

    async def again(self) -> None:
        return

    async def is_acked(self) -> bool:
        return self.server.confirmed > self._update

    async def acked(self) -> None:
        await self.server.until(lambda: self.server.confirmed > self._update)

    async def shown(self, count: int) -> list[str]:
        await self.server.until(lambda: len(self.server.texts) >= count)
        return self.server.texts

    async def press(self, label: str) -> None:
        await self.server.press(label)

    async def closed_chat(self) -> Address:
        self.server.blocked.add(-1001)
        return Address("telegram", "-1001")

    def slow_down(self) -> None:
        self.server.fail("sendmessage", telegram_payloads.Trouble(retry_after=LONG_SECONDS))

    def lose_answer(self) -> None:
        self.server.fail("sendmessage", telegram_payloads.Trouble(drops=True, is_done=True))


class DiscordSeat:
    surface: ChatSurface

    def __init__(self, server: discord_server.DiscordServer, surface: DiscordSurface, keeper: Keeper) -> None:
        self.server, self.surface, self.keeper = server, surface, keeper
        self.address = DISCORD_HOME

    async def write(self, text: str) -> None:
        await self.server.write(text)

    async def again(self) -> None:
        return

    async def is_acked(self) -> bool:
        pytest.skip("Discord's gateway has no acks: what was not kept is asked for with the next run")

    async def acked(self) -> None:
        return

    async def shown(self, count: int) -> list[str]:
        await self.server.until(lambda: len(self.server.texts) >= count)
        return self.server.texts

    async def press(self, label: str) -> None:
        await self.server.press(self.server.ours[-1], label)

    async def closed_chat(self) -> Address:
        return Address("discord", "404")

    def slow_down(self) -> None:
        self.server.limit("POST", "/messages", float(LONG_SECONDS))

    def lose_answer(self) -> None:
        self.server.fail("POST", "/messages", 0, takes=True)


class SlackSeat:
    surface: ChatSurface

    def __init__(self, slack: slack_server.FakeSlack, surface: SlackSurface, keeper: Keeper) -> None:
        self.slack, self.surface, self.keeper = slack, surface, keeper
        self.address = DM
        self._sent: list[slack_server.Envelope] = []

    async def write(self, text: str) -> None:
        self._sent.append(self.slack.say(text))

    async def again(self) -> None:
        self._sent.append(self.slack.again(self._sent[-1]))

    async def is_acked(self) -> bool:
        return self._sent[-1].acked.is_set()

    async def acked(self) -> None:
        await self._sent[-1].acked.wait()

    async def shown(self, count: int) -> list[str]:
        await self.slack.until(lambda: len(self.slack.shown()) >= count)
        return self.slack.shown()

    async def press(self, label: str) -> None:
        self.slack.press(label)

    async def closed_chat(self) -> Address:
        return Address("slack", "CGONE")

    def slow_down(self) -> None:
        failure = slack_server.Failure(status=429, retry_after=LONG_SECONDS)
        self.slack.failures["chat.postMessage"].append(failure)

    def lose_answer(self) -> None:
        self.slack.failures["chat.postMessage"].append(slack_server.Failure(is_done=True))


class WebhookSeat:
    surface: ChatSurface

    def __init__(self, world: Hooked, keeper: Keeper) -> None:
        self.world, self.keeper = world, keeper
        self.surface, self.address = world.surface, CI
        self._sending: list[asyncio.Task[tuple[int, webhook_program.Json]]] = []
        self._last = ""

    async def write(self, text: str) -> None:
        self._last = text
        await self.again()

    async def again(self) -> None:
        self._sending.append(asyncio.create_task(self.world.say(id=f"of {self._last}", text=self._last)))

    async def is_acked(self) -> bool:
        return self._sending[-1].done() and self._sending[-1].result()[0] == 202

    async def acked(self) -> None:
        assert (await self._sending[-1])[0] == 202

    async def shown(self, count: int) -> list[str]:
        await self.world.program.until(lambda: len(self.world.program.texts) >= count)
        return self.world.program.texts

    async def press(self, label: str) -> None:
        assert (await self.world.say(answer=label))[0] == 202

    async def closed_chat(self) -> Address:
        self.world.program.troubles.append(webhook_program.Trouble(410))
        return CI

    def slow_down(self) -> None:
        self.world.program.troubles.append(webhook_program.Trouble(429, str(LONG_SECONDS)))

    def lose_answer(self) -> None:
        self.world.program.troubles.append(webhook_program.Trouble(is_done=True))


class MatrixSeat:
    """A real homeserver: it can't be made to fail at a wish; tests/surfaces/matrix has a relay that can be cut."""

    def __init__(self, surface: ChatSurface, keeper: Keeper, people: tuple[Person, Account], room: str) -> None:
        self.surface, self.keeper = surface, keeper
        self.address = home(room)
        self._ann, self._bot = people
        self._room = room

    async def write(self, text: str) -> None:
        await self._ann.write(self._room, text)

    async def again(self) -> None:
        return

    async def is_acked(self) -> bool:
        pytest.skip("a homeserver does not show how far we have read")

    async def acked(self) -> None:
        return

    async def shown(self, count: int) -> list[str]:
        await self._ann.until(lambda: len(self._ann.texts_of(self._bot.id)) >= count)
        return self._ann.texts_of(self._bot.id)

    async def press(self, label: str) -> None:
        pytest.skip("Matrix has no buttons")

    async def closed_chat(self) -> Address:
        return home("!nowhere:localhost")

    def slow_down(self) -> None:
        pytest.skip("a real homeserver; its limits have a test of their own")

    def lose_answer(self) -> None:
        pytest.skip("a real homeserver; lost connections have a test of their own")


@asynccontextmanager
async def seated(platform: str, folder: Path, synapse: Synapse | None) -> AsyncGenerator[Seat]:
    """A seat at this platform, with our surface running."""
    keeper = Keeper()
    match platform:
        case "telegram":
            async with telegram_server.telegram_server() as server:
                telegram = Telegram(TelegramSettings(token=telegram_payloads.TOKEN, api_base=server.address))
                async with kept_running(telegram, keeper):
                    await server.until(lambda: "getupdates" in server.calls)
                    yield TelegramSeat(server, telegram, keeper)
        case "discord":
            async with discord_server.DiscordServer().serving() as server:
                discord = surface_for(server, folder / "discord.json")
                async with kept_running(discord, keeper):
                    await server.until(lambda: server.gateway.is_ready)
                    yield DiscordSeat(server, discord, keeper)
        case "slack":
            async with slack_server.slack_server() as slack:
                surface = SlackSurface(settings_for(slack))
                async with kept_running(surface, keeper):
                    await slack.until(lambda: bool(slack.sockets))
                    yield SlackSeat(slack, surface, keeper)
        case "webhook":
            async with hooked(folder, deliver=keeper.deliver) as world:
                yield WebhookSeat(world, keeper)
        case _:
            assert synapse is not None
            bot = synapse.register("hark")
            account = matrix(synapse, bot, folder)
            async with person(synapse) as ann, kept_running(account, keeper):
                room = await ann.room_with(bot)
                yield MatrixSeat(account, keeper, (ann, bot), room)
