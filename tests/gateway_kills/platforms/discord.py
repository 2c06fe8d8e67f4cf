"""A Discord with many direct chats, a channel of several people, and bad days; it hears no ack, but replays."""

import random
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from tests.fakes.discord_payloads import BOT, DIRECT, GENERAL, ROBOT, Json, user
from tests.fakes.discord_server import DiscordServer
from tests.gateway_kills.expectations import Deed
from tests.gateway_kills.kill_points import EDITED, FETCHED, SENT, KillPoint
from tests.gateway_kills.platforms.platform import Habits, Shown

FIRST_PERSON = 2000
VOICE = 1 << 13
NAME = f"<@{BOT}>"


class FakeDiscord(DiscordServer):
    """The servers. Whether something was taken is in our ledger alone: Discord hears nothing of it."""

    def __init__(self, chats: int, seed: int, kill_point: KillPoint) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.is_calm = False
        self.places |= {f"{DIRECT}{number}" for number in range(chats)}
        self.said: dict[str, list[Json]] = defaultdict(list)
        self._random = random.Random(seed)
        self._kill_point = kill_point

    async def told_again(self) -> None:
        """Now and then the same event comes twice."""
        if self._random.random() < 0.03:
            self._count("events delivered twice")
            with suppress(ConnectionError):  # it is being killed, and gets it when it resumes
                await self.gateway.redeliver()

    async def _create(self, request: web.Request) -> web.Response:
        self._bring_trouble("POST")
        known = len(self.messages)
        answer = await super()._create(request)
        if len(self.messages) > known:
            self.said[request.match_info["channel"]].append(list(self.messages.values())[-1])
        self._kill_point.at(SENT)
        return answer

    async def _edit(self, request: web.Request) -> web.Response:
        self._bring_trouble("PATCH")
        answer = await super()._edit(request)
        self._kill_point.at(EDITED)
        return answer

    async def _file(self, request: web.Request) -> web.Response:
        self._kill_point.at(FETCHED)
        return await super()._file(request)

    def _bring_trouble(self, method: str) -> None:
        """The next request of this kind may go wrong."""
        chance = self._random.random()
        if self.is_calm or chance > 0.012:
            return
        if chance < 0.004:
            self._count("429s")
            self.limit(method, "/messages", 0.5)
        elif chance < 0.008:
            self._count("answers of 502")
            self.fail(method, "/messages", 502)
        else:
            self._count("answers lost")
            self.fail(method, "/messages", 502, takes=True)

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


class DiscordFixture:
    """A person in a direct chat with the bot, or among others in a channel."""

    author_id = ""

    def __init__(self, server: FakeDiscord, number: int, place: str) -> None:
        self.session = f"discord:{place}"
        self.author = f"Person{FIRST_PERSON + number}"
        self.habits = Habits(is_group=place == GENERAL, full_characters=1800)
        self._server = server
        self._place = place
        self._me = user(self.author, str(FIRST_PERSON + number))

    async def write(self, text: str, deed: Deed, token: str, *, is_aside: bool = False) -> str:
        named = self.habits.is_group and not is_aside
        more = {"mentions": [ROBOT]} if named else {}
        return await self._write(f"{NAME} {text}" if named else text, deed, **more)

    async def picture(self, text: str, deed: Deed, album: str) -> str:
        raise NotImplementedError

    async def speak(self, recording: bytes, deed: Deed, token: str) -> str:
        file = self._server.file("voice-message.ogg", recording, "audio/ogg")
        file |= {"duration_secs": 1.0, "waveform": "AAAA"}
        named: Json = {"mentions": [ROBOT]} if self.habits.is_group else {}
        text = NAME if named else ""
        return await self._write(text, deed, attachments=[file], flags=VOICE, **named)

    async def rewrite(self, message: str, text: str, deed: Deed) -> None:
        deed.name = ("Rewritten", message, text)
        is_group = self.habits.is_group
        named: Json = {"mentions": [ROBOT]} if is_group else {}
        await self._server.rewrite(message, f"{NAME} {text}" if is_group else text, **named)
        await self._server.told_again()

    async def delete(self, message: str, deed: Deed) -> None:
        deed.name = ("Removed", message, "")
        await self._server.remove(message)
        await self._server.told_again()

    async def press(self, label: str, deed: Deed) -> Shown | None:
        for message in reversed(self._server.said[self._place][-20:]):
            if any(label in button for button in _buttons(message)):
                deed.name = ("Pressed", await self._server.press(message, label, self._me), "")
                return _shown(message)
        return None

    def shown(self) -> list[Shown]:
        return [_shown(message) for message in self._server.said[self._place]]

    async def _write(self, text: str, deed: Deed, **more: object) -> str:
        name = await self._server.write(text, self._place, self._me, **more)
        deed.name = ("Written", name, "")
        await self._server.told_again()
        return name


def _buttons(message: Json) -> tuple[str, ...]:
    return tuple(str(button["label"]) for row in message["components"] for button in row["components"])


def _shown(message: Json) -> Shown:
    return Shown(message["id"], message["content"], _buttons(message))


@asynccontextmanager
async def fake_discord(chats: int, seed: int, kill_point: KillPoint) -> AsyncGenerator[FakeDiscord]:
    """Serve until the end."""
    server = FakeDiscord(chats, seed, kill_point)
    async with server.serving():
        yield server
