"""A Telegram with many chats and bad days: it delivers again, asks to wait, and loses answers."""

import random
import time
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.fakes.telegram_payloads import BOT, Posted, Trouble, Wire, entities
from tests.fakes.telegram_server import TelegramServer
from tests.gateway_kills.expectations import Deed
from tests.gateway_kills.kill_points import EDITED, FETCHED, HANDED_OUT, SENT, KillPoint
from tests.gateway_kills.platforms.platform import Habits, Shown

FIRST_CHAT = 1000
FIRST_GROUP = -1_000_000
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(64)
SAYING = ("sendmessage", "editmessagetext")


class FakeTelegram(TelegramServer):
    """The servers. An update is taken when its number is confirmed."""

    def __init__(self, chats: int, groups: int, seed: int, kill_point: KillPoint) -> None:
        places = [_private(FIRST_CHAT + number) for number in range(chats)]
        places += [_group(FIRST_GROUP - number) for number in range(groups)]
        super().__init__(chats={place["id"]: place for place in places})
        self.counts: dict[str, int] = {}
        self.is_calm = False
        self._random = random.Random(seed)
        self._kill_point = kill_point
        self._deeds: deque[tuple[int, Deed]] = deque()
        self._by_chat: dict[int, list[Posted]] = {number: [] for number in self.chats}

    async def tell(self, kind: str, body: Wire, deed: Deed) -> None:
        """Have an update ready, once; later, when this is its turn, once more if its answer is lost."""
        async with self.changed:
            number = next(self.numbers)
            self.updates.append({"update_id": number, kind: body})
            self._deeds.append((number, deed))
            self.changed.notify_all()

    @property
    def unconfirmed(self) -> int:
        return len(self._deeds)

    def posts(self, chat: int) -> list[Posted]:
        return self._by_chat[chat]

    # What the servers do otherwise than on a good day.

    async def _hand_out(self, body: Wire) -> list[Wire]:
        if not self.is_calm and self._random.random() < 0.05:  # this confirmation is forgotten: all comes again
            self._count("updates handed out again")
            body = {**body, "offset": min(int(body.get("offset", 0)), self.confirmed)}
        updates = await super()._hand_out(body)
        while self._deeds and self._deeds[0][0] < self.confirmed:
            self._deeds.popleft()[1].take()
        if updates:
            self._kill_point.at(HANDED_OUT)
        return updates

    def _trouble(self, method: str, body: Wire) -> Trouble | None:
        chance = self._random.random()
        if self.is_calm or method not in SAYING or chance > 0.02:
            return super()._trouble(method, body)
        if chance < 0.004:
            self._count("429s")
            return Trouble(retry_after=1)
        if chance < 0.008:
            self._count("answers of 502")
            return Trouble(html=True, is_done=chance < 0.006)
        if chance < 0.012:
            self._count("answers lost")
            return Trouble(drops=True, is_done=True)
        if chance < 0.014:
            self._count("connections lost")
            return Trouble(drops=True)
        return super()._trouble(method, body)

    def _send(self, body: Wire) -> Wire:
        answer = super()._send(body)
        self._by_chat[self.posted[-1].chat].append(self.posted[-1])
        self._kill_point.at(SENT)
        return answer

    def _edit(self, body: Wire) -> Wire:
        whole, self.posted = self.posted, self._by_chat[self._chat(body)["id"]]  # one chat is quicker to search
        try:
            answer = super()._edit(body)
        finally:
            self.posted = whole
        self._kill_point.at(EDITED)
        return answer

    async def download(self, request: web.Request) -> web.StreamResponse:
        self._kill_point.at(FETCHED)
        return await super().download(request)

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


class TelegramFixture:
    """A person in a private chat or a group. Telegram tells no bot when a message is deleted."""

    author_id = ""

    def __init__(self, server: FakeTelegram, chat: int, person: int) -> None:
        self.session = f"telegram:{chat}"
        self.author = f"Person{person}"
        self.habits = Habits(can_delete=False, has_albums=True, is_group=chat != person)
        self._server = server
        self._chat = server.chats[chat]
        self._name = f"@{BOT['username']}" if chat != person else ""
        self._me: Wire = {"id": person, "is_bot": False, "first_name": self.author}

    async def write(self, text: str, deed: Deed, token: str, *, is_aside: bool = False) -> str:
        return await self._write(deed, **self._said(text, is_aside=is_aside))

    async def picture(self, text: str, deed: Deed, album: str) -> str:
        name = f"p{next(self._server.numbers)}"
        self._server.files[name] = PICTURE
        photo = {"file_id": name, "file_unique_id": name, "file_size": len(PICTURE), "width": 1, "height": 1}
        said = self._said(text)
        caption = {"caption": said["text"], "caption_entities": said["entities"]}
        return await self._write(deed, photo=[photo], media_group_id=album, **caption)

    async def speak(self, recording: bytes, deed: Deed, token: str) -> str:
        self._server.files[token] = recording
        file = {"file_id": token, "file_unique_id": token, "file_size": len(recording)}
        caption = {"caption": self._name, "caption_entities": entities(self._name)} if self._name else {}
        return await self._write(deed, voice={**file, "duration": 1, "mime_type": "audio/ogg"}, **caption)

    async def rewrite(self, message: str, text: str, deed: Deed) -> None:
        body = self._message(int(message), **self._said(text))
        await self._server.tell("edited_message", {**body, "edit_date": int(time.time())}, deed)

    async def delete(self, message: str, deed: Deed) -> None:
        raise NotImplementedError

    async def press(self, label: str, deed: Deed) -> Shown | None:
        for one in reversed(self._server.posts(self._chat["id"])[-20:]):
            for button in one.buttons:
                if label in button["text"]:
                    message = {**self._message(one.id, text=one.text), "from": BOT}
                    query = {"id": f"q{next(self._server.numbers)}", "from": self._me, "chat_instance": "c"}
                    query |= {"data": button["callback_data"], "message": message}
                    await self._server.tell("callback_query", query, deed)
                    return _shown(one)
        return None

    def shown(self) -> list[Shown]:
        return [_shown(one) for one in self._server.posts(self._chat["id"])]

    def _said(self, text: str, *, is_aside: bool = False) -> Wire:
        """Return a text; in a group one that names the bot, as commands do by themselves."""
        named = f"{self._name} {text}" if self._name and not is_aside and not text.startswith("/") else text
        return {"text": named, "entities": entities(named)}

    async def _write(self, deed: Deed, **body: Any) -> str:
        number = next(self._server.numbers)
        await self._server.tell("message", self._message(number, **body), deed)
        return str(number)

    def _message(self, number: int, **body: Any) -> Wire:
        return {"message_id": number, "date": int(time.time()), "chat": self._chat, "from": self._me, **body}


def _private(number: int) -> Wire:
    return {"id": number, "type": "private", "first_name": f"Person{number}"}


def _group(number: int) -> Wire:
    return {"id": number, "type": "supergroup", "title": f"Group {-number}"}


def _shown(one: Posted) -> Shown:
    return Shown(str(one.id), one.text, tuple(button["text"] for button in one.buttons))


@asynccontextmanager
async def fake_telegram(chats: int, groups: int, seed: int, kill_point: KillPoint) -> AsyncGenerator[FakeTelegram]:
    """Serve until the end."""
    telegram = FakeTelegram(chats, groups, seed, kill_point)
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/bot{token}/{method}", telegram.call)
    app.router.add_get("/file/bot{token}/files/{name}", telegram.download)
    server = TestServer(app)
    await server.start_server(access_log=None, shutdown_timeout=0.1)
    telegram.address = str(server.make_url("")).rstrip("/")
    try:
        yield telegram
    finally:
        telegram.pollers += 1
        async with telegram.changed:
            telegram.changed.notify_all()
        await server.close()
