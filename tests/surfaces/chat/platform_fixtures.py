"""One fixture per chat platform, with which tests can act as the users and servers of any platform in the same way."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Protocol

import pytest

from hark.protocol.chat import Address, ChatSurface, IncomingEvent
from hark.surfaces.discord.surface import DiscordSurface
from hark.surfaces.slack.surface import SlackSurface
from hark.surfaces.telegram.platform import TelegramSettings
from hark.surfaces.telegram.surface import TelegramSurface, load_library
from tests.fakes import discord_server, slack_server, telegram_payloads, telegram_server, webhook_program
from tests.surfaces.discord.discord_fixture import DIRECT_ADDRESS as DISCORD_HOME
from tests.surfaces.discord.discord_fixture import make_discord_surface
from tests.surfaces.matrix.matrix_fixture import MatrixUser, make_matrix_surface, matrix_user, room_address
from tests.surfaces.matrix.synapse import Account, Synapse
from tests.surfaces.slack.slack_fixture import DM, slack_settings
from tests.surfaces.webhook.webhook_fixture import CI, RunningWebhook, running_webhook
from tests.waiting import until

load_library()  # as the surface does; otherwise these imports build all types of the library, which takes seconds
import_module("hark.surfaces.telegram.receiving")  # The remaining import time must not count as part of a test.
import_module("hark.surfaces.telegram.sending")

Condition = Callable[[], bool]
WAIT_SECONDS = 300


@dataclass
class DeliveryRecorder:
    """Records all attempted deliveries in `attempts` and the accepted ones in `delivered`.

    A delivery waits while `gate` is closed, then raises the next exception in `errors`, if any.
    """

    attempts: list[IncomingEvent] = field(default_factory=list[IncomingEvent])
    delivered: list[IncomingEvent] = field(default_factory=list[IncomingEvent])
    errors: list[Exception] = field(default_factory=list[Exception])
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def deliver(self, incoming: IncomingEvent) -> None:
        self.attempts.append(incoming)
        self.changed.set()
        await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.delivered.append(incoming)
        self.changed.set()

    async def until(self, is_done: Condition) -> None:
        await until(is_done, changed=self.changed, shows=lambda: (self.attempts, self.delivered))


class PlatformFixture(Protocol):
    """A fake or real chat platform with one user and a running surface."""

    surface: ChatSurface
    address: Address
    recorder: DeliveryRecorder

    async def write(self, text: str) -> None:
        """Write a message as the user. Returns when the platform starts to deliver the message."""
        ...

    async def redeliver(self) -> None:
        """Deliver the last message again, on platforms that don't retry automatically."""
        ...

    async def is_acked(self) -> bool:
        """Return whether the platform counts the last message as delivered."""
        ...

    async def until_acked(self) -> None:
        """Wait until the platform counts the last message as delivered."""
        ...

    async def shown_texts(self, count: int) -> list[str]:
        """Wait for this many messages from the bot. Return their texts as the user sees them."""
        ...

    async def press(self, label: str) -> None:
        """Press the button with this label."""
        ...

    async def inaccessible_chat(self) -> Address:
        """Return the address of a chat to which the bot has no access."""
        ...

    def rate_limit_next(self) -> None:
        """Make the platform rate-limit the next message, with a wait time of WAIT_SECONDS."""
        ...

    def lose_next_answer(self) -> None:
        """Make the platform accept the next message but lose its response."""
        ...


RunSurface = Callable[[ChatSurface, DeliveryRecorder], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def keep_running(surface: ChatSurface, recorder: DeliveryRecorder) -> AsyncGenerator[None]:
    """Run a surface and restart it after errors, as the gateway does."""

    async def run_forever() -> None:
        while True:
            with suppress(Exception):
                await surface.run(recorder.deliver)
            await asyncio.sleep(0.01)

    running = asyncio.create_task(run_forever())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])


class TelegramFixture:
    surface: ChatSurface

    def __init__(
        self, server: telegram_server.TelegramServer, surface: TelegramSurface, recorder: DeliveryRecorder
    ) -> None:
        self.server, self.surface, self.recorder = server, surface, recorder
        self.address = Address("telegram", "1")
        self._update = 0

    async def write(self, text: str) -> None:
        await self.server.write(text)
        self._update = self.server.updates[-1]["update_id"]

    async def redeliver(self) -> None:
        return

    async def is_acked(self) -> bool:
        return self.server.confirmed > self._update

    async def until_acked(self) -> None:
        await self.server.until(lambda: self.server.confirmed > self._update)

    async def shown_texts(self, count: int) -> list[str]:
        await self.server.until(lambda: len(self.server.texts) >= count)
        return self.server.texts

    async def press(self, label: str) -> None:
        await self.server.press(label)

    async def inaccessible_chat(self) -> Address:
        self.server.blocked.add(-1001)
        return Address("telegram", "-1001")

    def rate_limit_next(self) -> None:
        self.server.fail("sendmessage", telegram_payloads.TelegramFailure(retry_after=WAIT_SECONDS))

    def lose_next_answer(self) -> None:
        self.server.fail("sendmessage", telegram_payloads.TelegramFailure(drops_connection=True, is_done=True))


class DiscordFixture:
    surface: ChatSurface

    def __init__(
        self, server: discord_server.DiscordServer, surface: DiscordSurface, recorder: DeliveryRecorder
    ) -> None:
        self.server, self.surface, self.recorder = server, surface, recorder
        self.address = DISCORD_HOME

    async def write(self, text: str) -> None:
        await self.server.write(text)

    async def redeliver(self) -> None:
        return

    async def is_acked(self) -> bool:
        pytest.skip("Discord's gateway has no acks; the next run requests undelivered events again")

    async def until_acked(self) -> None:
        return

    async def shown_texts(self, count: int) -> list[str]:
        await self.server.until(lambda: len(self.server.bot_texts) >= count)
        return self.server.bot_texts

    async def press(self, label: str) -> None:
        await self.server.press(self.server.bot_messages[-1], label)

    async def inaccessible_chat(self) -> Address:
        return Address("discord", "404")

    def rate_limit_next(self) -> None:
        self.server.rate_limit("POST", "/messages", float(WAIT_SECONDS))

    def lose_next_answer(self) -> None:
        self.server.fail("POST", "/messages", 0, is_processed=True)


class SlackFixture:
    surface: ChatSurface

    def __init__(self, slack: slack_server.SlackServer, surface: SlackSurface, recorder: DeliveryRecorder) -> None:
        self.slack, self.surface, self.recorder = slack, surface, recorder
        self.address = DM
        self._sent: list[slack_server.Envelope] = []

    async def write(self, text: str) -> None:
        self._sent.append(self.slack.say(text))

    async def redeliver(self) -> None:
        self._sent.append(self.slack.redeliver(self._sent[-1]))

    async def is_acked(self) -> bool:
        return self._sent[-1].acked.is_set()

    async def until_acked(self) -> None:
        await self._sent[-1].acked.wait()

    async def shown_texts(self, count: int) -> list[str]:
        await self.slack.until(lambda: len(self.slack.bot_texts()) >= count)
        return self.slack.bot_texts()

    async def press(self, label: str) -> None:
        self.slack.press(label)

    async def inaccessible_chat(self) -> Address:
        return Address("slack", "CGONE")

    def rate_limit_next(self) -> None:
        failure = slack_server.SlackFailure(status=429, retry_after=WAIT_SECONDS)
        self.slack.failures["chat.postMessage"].append(failure)

    def lose_next_answer(self) -> None:
        self.slack.failures["chat.postMessage"].append(slack_server.SlackFailure(is_done=True))


class WebhookFixture:
    surface: ChatSurface

    def __init__(self, hook: RunningWebhook, recorder: DeliveryRecorder) -> None:
        self.hook, self.recorder = hook, recorder
        self.surface, self.address = hook.surface, CI
        self._sending: list[asyncio.Task[tuple[int, webhook_program.Json]]] = []
        self._last = ""

    async def write(self, text: str) -> None:
        self._last = text
        await self.redeliver()

    async def redeliver(self) -> None:
        self._sending.append(asyncio.create_task(self.hook.send_message(id=f"of {self._last}", text=self._last)))

    async def is_acked(self) -> bool:
        return self._sending[-1].done() and self._sending[-1].result()[0] == 202

    async def until_acked(self) -> None:
        assert (await self._sending[-1])[0] == 202

    async def shown_texts(self, count: int) -> list[str]:
        await self.hook.program.until(lambda: len(self.hook.program.texts) >= count)
        return self.hook.program.texts

    async def press(self, label: str) -> None:
        assert (await self.hook.send_message(answer=label))[0] == 202

    async def inaccessible_chat(self) -> Address:
        self.hook.program.failures.append(webhook_program.WebhookFailure(410))
        return CI

    def rate_limit_next(self) -> None:
        self.hook.program.failures.append(webhook_program.WebhookFailure(429, str(WAIT_SECONDS)))

    def lose_next_answer(self) -> None:
        self.hook.program.failures.append(webhook_program.WebhookFailure(is_done=True))


class MatrixFixture:
    """A real Matrix homeserver, which can't simulate failures. tests/surfaces/matrix has a relay for that."""

    def __init__(
        self, surface: ChatSurface, recorder: DeliveryRecorder, accounts: tuple[MatrixUser, Account], room: str
    ) -> None:
        self.surface, self.recorder = surface, recorder
        self.address = room_address(room)
        self._ann, self._bot = accounts
        self._room = room

    async def write(self, text: str) -> None:
        await self._ann.write(self._room, text)

    async def redeliver(self) -> None:
        return

    async def is_acked(self) -> bool:
        pytest.skip("a homeserver doesn't show which events were received")

    async def until_acked(self) -> None:
        return

    async def shown_texts(self, count: int) -> list[str]:
        await self._ann.until(lambda: len(self._ann.texts_of(self._bot.id)) >= count)
        return self._ann.texts_of(self._bot.id)

    async def press(self, label: str) -> None:
        pytest.skip("Matrix has no buttons")

    async def inaccessible_chat(self) -> Address:
        return room_address("!nowhere:localhost")

    def rate_limit_next(self) -> None:
        pytest.skip("a real homeserver; its rate limits have separate tests")

    def lose_next_answer(self) -> None:
        pytest.skip("a real homeserver; lost connections have separate tests")


@asynccontextmanager
async def platform_fixture(
    platform: str, directory: Path, synapse: Synapse | None, run: RunSurface = keep_running
) -> AsyncGenerator[PlatformFixture]:
    """Yield the fixture for a platform, with a surface that `run` keeps running."""
    recorder = DeliveryRecorder()
    match platform:
        case "telegram":
            async with telegram_server.telegram_server() as server:
                telegram = TelegramSurface(TelegramSettings(token=telegram_payloads.TOKEN, api_base=server.address))
                async with run(telegram, recorder):
                    await server.until(lambda: "getupdates" in server.calls)
                    yield TelegramFixture(server, telegram, recorder)
        case "discord":
            async with discord_server.DiscordServer().serving() as server:
                discord = make_discord_surface(server, directory / "discord.json")
                async with run(discord, recorder):
                    await server.until(lambda: server.gateway.is_ready)
                    yield DiscordFixture(server, discord, recorder)
        case "slack":
            async with slack_server.slack_server() as slack:
                surface = SlackSurface(slack_settings(slack))
                async with run(surface, recorder):
                    await slack.until(lambda: bool(slack.sockets))
                    yield SlackFixture(slack, surface, recorder)
        case "webhook":
            async with running_webhook(directory, deliver=recorder.deliver) as hook:
                yield WebhookFixture(hook, recorder)
        case _:
            assert synapse is not None
            bot = synapse.register("hark")
            account = make_matrix_surface(synapse, bot, directory)
            async with matrix_user(synapse) as ann, run(account, recorder):
                room = await ann.create_room_with(bot)
                yield MatrixFixture(account, recorder, (ann, bot), room)
