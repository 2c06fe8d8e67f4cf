"""A fake Discord with many direct chats, a group channel and injected failures. It gets no acknowledgements but
replays events.
"""

import random
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from tests.fakes.discord_payloads import BOT, DIRECT, GENERAL, ROBOT, Json, user
from tests.fakes.discord_server import DiscordServer
from tests.gateway_kills.expectations import UserAction
from tests.gateway_kills.kill_points import EDITED, FETCHED, SENT, KillPoint
from tests.gateway_kills.platforms.platform import PlatformFeatures, VisibleMessage

FIRST_USER_ID = 2000
VOICE = 1 << 13
NAME = f"<@{BOT}>"


class FakeDiscord(DiscordServer):
    """Fake Discord servers. They get no acknowledgements, so only Hark's ledger shows which events were accepted."""

    def __init__(self, chats: int, seed: int, kill_point: KillPoint) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.is_calm = False
        self.channels |= {f"{DIRECT}{number}" for number in range(chats)}
        self.bot_messages_by_channel: dict[str, list[Json]] = defaultdict(list)
        self._random = random.Random(seed)
        self._kill_point = kill_point

    async def maybe_redeliver(self) -> None:
        """Sometimes deliver the same event twice."""
        if self._random.random() < 0.03:
            self._count("events delivered twice")
            with suppress(ConnectionError):  # the gateway is being killed and receives the event when it resumes
                await self.gateway.redeliver()

    async def _create(self, request: web.Request) -> web.Response:
        self._maybe_inject_failure("POST")
        known = len(self.messages)
        answer = await super()._create(request)
        if len(self.messages) > known:
            self.bot_messages_by_channel[request.match_info["channel"]].append(list(self.messages.values())[-1])
        self._kill_point.reach(SENT)
        return answer

    async def _edit(self, request: web.Request) -> web.Response:
        self._maybe_inject_failure("PATCH")
        answer = await super()._edit(request)
        self._kill_point.reach(EDITED)
        return answer

    async def _file(self, request: web.Request) -> web.Response:
        self._kill_point.reach(FETCHED)
        return await super()._file(request)

    def _maybe_inject_failure(self, method: str) -> None:
        """Sometimes make the next request with this method fail."""
        chance = self._random.random()
        if self.is_calm or chance > 0.012:
            return
        if chance < 0.004:
            self._count("429s")
            self.rate_limit(method, "/messages", 0.5)
        elif chance < 0.008:
            self._count("answers of 502")
            self.fail(method, "/messages", 502)
        else:
            self._count("answers lost")
            self.fail(method, "/messages", 502, is_processed=True)

    def _count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1


class DiscordFixture:
    """A simulated user in a direct chat with the bot, or in a channel."""

    author_id = ""

    def __init__(self, server: FakeDiscord, number: int, channel_id: str) -> None:
        self.session = f"discord:{channel_id}"
        self.author = f"Person{FIRST_USER_ID + number}"
        self.features = PlatformFeatures(is_group=channel_id == GENERAL, split_characters=1800)
        self._server = server
        self._channel_id = channel_id
        self._me = user(self.author, str(FIRST_USER_ID + number))

    async def write(self, text: str, action: UserAction, token: str, *, is_aside: bool = False) -> str:
        named = self.features.is_group and not is_aside
        more = {"mentions": [ROBOT]} if named else {}
        return await self._write(f"{NAME} {text}" if named else text, action, **more)

    async def send_picture(self, text: str, action: UserAction, album: str) -> str:
        raise NotImplementedError

    async def send_recording(self, recording: bytes, action: UserAction, token: str) -> str:
        file = self._server.add_file("voice-message.ogg", recording, "audio/ogg")
        file |= {"duration_secs": 1.0, "waveform": "AAAA"}
        named: Json = {"mentions": [ROBOT]} if self.features.is_group else {}
        text = NAME if named else ""
        return await self._write(text, action, attachments=[file], flags=VOICE, **named)

    async def edit(self, message: str, text: str, action: UserAction) -> None:
        action.name = ("Rewritten", message, text)
        is_group = self.features.is_group
        named: Json = {"mentions": [ROBOT]} if is_group else {}
        await self._server.edit(message, f"{NAME} {text}" if is_group else text, **named)
        await self._server.maybe_redeliver()

    async def delete(self, message: str, action: UserAction) -> None:
        action.name = ("Removed", message, "")
        await self._server.delete(message)
        await self._server.maybe_redeliver()

    async def press(self, label: str, action: UserAction) -> VisibleMessage | None:
        for message in reversed(self._server.bot_messages_by_channel[self._channel_id][-20:]):
            if any(label in button for button in _buttons(message)):
                action.name = ("Pressed", await self._server.press(message, label, self._me), "")
                return _visible_message(message)
        return None

    def visible_messages(self) -> list[VisibleMessage]:
        return [_visible_message(message) for message in self._server.bot_messages_by_channel[self._channel_id]]

    async def _write(self, text: str, action: UserAction, **more: object) -> str:
        name = await self._server.write(text, self._channel_id, self._me, **more)
        action.name = ("Written", name, "")
        await self._server.maybe_redeliver()
        return name


def _buttons(message: Json) -> tuple[str, ...]:
    return tuple(str(button["label"]) for row in message["components"] for button in row["components"])


def _visible_message(message: Json) -> VisibleMessage:
    return VisibleMessage(message["id"], message["content"], _buttons(message))


@asynccontextmanager
async def fake_discord(chats: int, seed: int, kill_point: KillPoint) -> AsyncGenerator[FakeDiscord]:
    """Serve the fake Discord until the context ends."""
    server = FakeDiscord(chats, seed, kill_point)
    async with server.serving():
        yield server
