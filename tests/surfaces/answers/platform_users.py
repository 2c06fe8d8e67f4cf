"""One user on each chat platform, with a real agent behind the platform's surface and a fake or real server."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

import hark
from hark.app.pairing import PairingFile
from hark.cli.serve.chat_surfaces import chat_services
from hark.protocol.chat import Address, ChatSurface
from hark.protocol.names import session_of_address
from hark.protocol.session import Session
from hark.providers.scripted import ScriptedProvider
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.platform import Platform
from hark.surfaces.chat.questions import QUESTION_KEY
from hark.surfaces.chat.sender_policy import SenderPolicy
from hark.surfaces.chat.settings import ChatSettings
from hark.surfaces.slack.surface import SlackSurface
from hark.surfaces.telegram.platform import TelegramSettings
from hark.surfaces.telegram.surface import TelegramSurface
from tests.fakes.discord_payloads import DIRECT, GENERAL, ROBOT
from tests.fakes.discord_server import DiscordServer
from tests.fakes.slack_server import SlackServer, slack_server
from tests.fakes.telegram_payloads import ANN, BOT, PRIVATE, TOKEN, Wire
from tests.fakes.telegram_server import TelegramServer, telegram_server
from tests.surfaces.discord.discord_fixture import make_discord_surface
from tests.surfaces.matrix.matrix_fixture import MatrixUser, make_matrix_surface, matrix_user, room_address
from tests.surfaces.matrix.synapse import Account, Synapse
from tests.surfaces.slack.slack_fixture import slack_settings
from tests.waiting import until

PLATFORMS = ("telegram", "discord", "slack", "matrix")
GROUP: Wire = {"id": -1002, "type": "supergroup", "title": "Friends"}


class TelegramUser:
    def __init__(self, server: TelegramServer, *, is_group: bool) -> None:
        self.server, self._is_group = server, is_group
        self._chat = GROUP if is_group else PRIVATE
        server.chats[GROUP["id"]] = GROUP
        self.address = Address("telegram", str(self._chat["id"]))

    async def write(self, text: str, replied_to: str) -> None:
        reply: Wire = {
            "message_id": int(replied_to or 0),
            "date": 1,
            "chat": self._chat,
            "from": BOT,
            "text": "❓ Which?",
        }
        is_mention = self._is_group and not replied_to and not text.startswith("/")
        more: Wire = {"reply_to_message": reply} if replied_to else {}
        await self.server.write(f"@HarkTestBot {text}" if is_mention else text, chat=self._chat, author=ANN, **more)

    async def shown(self) -> Mapping[str, str]:
        return {str(one.id): one.text for one in self.server.posted}


class DiscordUser:
    def __init__(self, server: DiscordServer, *, is_group: bool) -> None:
        self.server, self._is_group = server, is_group
        self._channel = GENERAL if is_group else DIRECT
        self.address = Address("discord", self._channel)

    async def write(self, text: str, replied_to: str) -> None:
        more: dict[str, Any] = {"mentions": [ROBOT]} if self._is_group else {}
        if replied_to:
            reference = {"message_id": replied_to, "channel_id": self._channel}
            more = {"type": 19, "message_reference": reference, "referenced_message": self.server.messages[replied_to]}
        is_mention = self._is_group and not replied_to
        await self.server.write(f"<@9000> {text}" if is_mention else text, self._channel, **more)

    async def shown(self) -> Mapping[str, str]:
        return {one["id"]: one["content"] for one in self.server.bot_messages}


class SlackUser:
    """In a channel, all messages are in one thread, in which the bot reads every message."""

    def __init__(self, slack: SlackServer, *, is_group: bool) -> None:
        self.slack, self._channel, self._thread = slack, "C1" if is_group else "DANN", ""
        if is_group:
            self._thread = slack.say("<@UBOT> hello", "C1").body["payload"]["event"]["ts"]
        self.address = Address("slack", self._channel, self._thread)

    async def write(self, text: str, replied_to: str) -> None:
        self.slack.say(text, self._channel, thread=replied_to or self._thread)

    async def shown(self) -> Mapping[str, str]:
        messages, texts = self.slack.bot_messages(self._channel), self.slack.bot_texts(self._channel)
        return {message["ts"]: text for message, text in zip(messages, texts, strict=True)}


class MatrixRoomUser:
    def __init__(self, ann: MatrixUser, bot: Account, room: str, *, is_group: bool) -> None:
        self._ann, self._bot, self._room, self._is_group = ann, bot, room, is_group
        self.address = room_address(room)

    async def write(self, text: str, replied_to: str) -> None:
        if replied_to:
            await self._ann.reply(self._room, replied_to, text)
        else:
            await self._ann.write(self._room, f"Hark: {text}" if self._is_group else text)

    async def shown(self) -> Mapping[str, str]:
        await self._ann.sync()
        events = self._ann.events_of(self._bot.id)
        return {
            event["event_id"]: event["content"]["body"] for event in events if "m.new_content" not in event["content"]
        }


PlatformUser = TelegramUser | DiscordUser | SlackUser | MatrixRoomUser


@dataclass
class ChatWithAgent:
    """A user's chat with a running agent."""

    user: PlatformUser
    agent: hark.Agent
    ledger: SqliteChatLedger
    texts: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def session(self) -> Session:
        return self.agent.session(session_of_address(self.user.address))

    async def shown_text(self) -> str:
        """Return the text of all messages from the bot."""
        self.texts |= await self.user.shown()
        return "\n".join(self.texts.values())

    async def newest_question(self, count: int) -> str:
        """Wait until this many questions are shown and recorded. Return the id of the newest."""

        async def find_question() -> str:
            await self.shown_text()
            asked = [message for message, text in self.texts.items() if text.startswith("❓")]
            is_sent = len(asked) == count and await self.ledger.is_sent(self.user.address, QUESTION_KEY, asked[-1])
            return asked[-1] if is_sent else ""

        return await until(find_question, shows=lambda: self.texts)


@asynccontextmanager
async def open_chat(
    platform: str, home: Path, provider: ScriptedProvider, synapse: Synapse | None, *, is_group: bool, **sections: Any
) -> AsyncGenerator[ChatWithAgent]:
    """Run a platform's surface with an agent, and open the user's private chat or group."""
    async with AsyncExitStack() as stack:
        agent = await stack.enter_async_context(
            hark.open(home=home, workspace=home, routes=[{"provider": provider}], **sections)
        )
        ledger = SqliteChatLedger(home / "gateway.db")
        stack.push_async_callback(ledger.close)
        settings = ChatSettings(allow=("*",), per_minute=100_000, receipts="off", streams=False)
        senders = SenderPolicy(platform, settings.allow, PairingFile(home / "pairing.json"), settings.per_minute)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)

        def run(surface: ChatSurface) -> None:
            tasks.start_soon(Platform(surface, settings, senders, chat_services(agent, ledger)).run)

        user = await _open_user(stack, platform, home, synapse, run, is_group=is_group)
        yield ChatWithAgent(user, agent, ledger)


async def _open_user(
    stack: AsyncExitStack,
    platform: str,
    home: Path,
    synapse: Synapse | None,
    run: Callable[[ChatSurface], None],
    *,
    is_group: bool,
) -> PlatformUser:
    match platform:
        case "telegram":
            telegram = await stack.enter_async_context(telegram_server())
            run(TelegramSurface(TelegramSettings(token=TOKEN, api_base=telegram.address)))
            await telegram.until(lambda: "getupdates" in telegram.calls)
            return TelegramUser(telegram, is_group=is_group)
        case "discord":
            discord = await stack.enter_async_context(DiscordServer().serving())
            run(make_discord_surface(discord, home / "discord.json"))
            await discord.until(lambda: discord.gateway.is_ready)
            return DiscordUser(discord, is_group=is_group)
        case "slack":
            slack = await stack.enter_async_context(slack_server())
            run(SlackSurface(slack_settings(slack)))
            await slack.until(lambda: bool(slack.sockets))
            return SlackUser(slack, is_group=is_group)
        case _:
            assert synapse is not None
            bot = synapse.register("hark", "Hark")
            ann = await stack.enter_async_context(matrix_user(synapse))
            run(make_matrix_surface(synapse, bot, home))
            bob = await stack.enter_async_context(matrix_user(synapse, "bob"))
            room = await ann.create_room_with(bot, *([bob.id] if is_group else []))
            if is_group:
                await bob.client.join(room)
            return MatrixRoomUser(ann, bot, room, is_group=is_group)
