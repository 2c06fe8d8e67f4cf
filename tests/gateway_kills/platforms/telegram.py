"""A fake Telegram with many chats and injected failures: it redelivers, rate-limits and loses responses."""

import random
import time
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.fakes.telegram_payloads import BOT, PostedMessage, TelegramFailure, Wire, entities
from tests.fakes.telegram_server import TelegramServer
from tests.gateway_kills.expectations import UserAction
from tests.gateway_kills.kill_points import EDITED, FETCHED, SENT, UPDATES_DELIVERED, KillPoint
from tests.gateway_kills.platforms.platform import PlatformFeatures, VisibleMessage

FIRST_CHAT = 1000
FIRST_GROUP = -1_000_000
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(64)
WRITE_METHODS = ("sendmessage", "editmessagetext")


class FakeTelegram(TelegramServer):
    """Fake Telegram servers. An update counts as accepted when the gateway has confirmed its number."""

    def __init__(self, chats: int, groups: int, seed: int, kill_point: KillPoint) -> None:
        chat_objects = [_private_chat(FIRST_CHAT + number) for number in range(chats)]
        chat_objects += [_group_chat(FIRST_GROUP - number) for number in range(groups)]
        super().__init__(chats={place["id"]: place for place in chat_objects})
        self.counts: dict[str, int] = {}
        self.is_calm = False
        self._random = random.Random(seed)
        self._kill_point = kill_point
        self._actions: deque[tuple[int, UserAction]] = deque()
        self._by_chat: dict[int, list[PostedMessage]] = {number: [] for number in self.chats}

    async def add_update_for(self, kind: str, body: Wire, action: UserAction) -> None:
        """Make an update available to the gateway, and record its confirmation in `action`."""
        async with self.changed:
            number = next(self.numbers)
            self.updates.append({"update_id": number, kind: body})
            self._actions.append((number, action))
            self.changed.notify_all()

    @property
    def unconfirmed(self) -> int:
        return len(self._actions)

    def posts(self, chat: int) -> list[PostedMessage]:
        return self._by_chat[chat]

    # Injected failures.

    async def _get_updates(self, body: Wire) -> list[Wire]:
        # the confirmation is ignored, and all updates are sent again
        if not self.is_calm and self._random.random() < 0.05:
            self._count("updates delivered again")
            body = {**body, "offset": min(int(body.get("offset", 0)), self.confirmed)}
        updates = await super()._get_updates(body)
        while self._actions and self._actions[0][0] < self.confirmed:
            self._actions.popleft()[1].mark_accepted()
        if updates:
            self._kill_point.reach(UPDATES_DELIVERED)
        return updates

    def _next_failure(self, method: str, body: Wire) -> TelegramFailure | None:
        chance = self._random.random()
        if self.is_calm or method not in WRITE_METHODS or chance > 0.02:
            return super()._next_failure(method, body)
        if chance < 0.004:
            self._count("429s")
            return TelegramFailure(retry_after=1)
        if chance < 0.008:
            self._count("answers of 502")
            return TelegramFailure(html=True, is_done=chance < 0.006)
        if chance < 0.012:
            self._count("answers lost")
            return TelegramFailure(drops_connection=True, is_done=True)
        if chance < 0.014:
            self._count("connections lost")
            return TelegramFailure(drops_connection=True)
        return super()._next_failure(method, body)

    def _send(self, body: Wire) -> Wire:
        answer = super()._send(body)
        self._by_chat[self.posted[-1].chat].append(self.posted[-1])
        self._kill_point.reach(SENT)
        return answer

    def _edit(self, body: Wire) -> Wire:
        all_posted, self.posted = self.posted, self._by_chat[self._chat(body)["id"]]  # one chat is faster to search
        try:
            answer = super()._edit(body)
        finally:
            self.posted = all_posted
        self._kill_point.reach(EDITED)
        return answer

    async def download(self, request: web.Request) -> web.StreamResponse:
        self._kill_point.reach(FETCHED)
        return await super().download(request)

    def _count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1


class TelegramFixture:
    """A simulated user in a private chat or a group. Telegram does not notify bots about deletions."""

    author_id = ""

    def __init__(self, server: FakeTelegram, chat: int, user_id: int) -> None:
        self.session = f"telegram:{chat}"
        self.author = f"Person{user_id}"
        self.features = PlatformFeatures(can_delete=False, has_albums=True, is_group=chat != user_id)
        self._server = server
        self._chat = server.chats[chat]
        self._name = f"@{BOT['username']}" if chat != user_id else ""
        self._me: Wire = {"id": user_id, "is_bot": False, "first_name": self.author}

    async def write(self, text: str, action: UserAction, token: str, *, is_aside: bool = False) -> str:
        return await self._write(action, **self._text_fields(text, is_aside=is_aside))

    async def send_picture(self, text: str, action: UserAction, album: str) -> str:
        name = f"p{next(self._server.numbers)}"
        self._server.files[name] = PICTURE
        photo = {"file_id": name, "file_unique_id": name, "file_size": len(PICTURE), "width": 1, "height": 1}
        text_fields = self._text_fields(text)
        caption = {"caption": text_fields["text"], "caption_entities": text_fields["entities"]}
        return await self._write(action, photo=[photo], media_group_id=album, **caption)

    async def send_recording(self, recording: bytes, action: UserAction, token: str) -> str:
        self._server.files[token] = recording
        file = {"file_id": token, "file_unique_id": token, "file_size": len(recording)}
        caption = {"caption": self._name, "caption_entities": entities(self._name)} if self._name else {}
        return await self._write(action, voice={**file, "duration": 1, "mime_type": "audio/ogg"}, **caption)

    async def edit(self, message: str, text: str, action: UserAction) -> None:
        body = self._message(int(message), **self._text_fields(text))
        await self._server.add_update_for("edited_message", {**body, "edit_date": int(time.time())}, action)

    async def delete(self, message: str, action: UserAction) -> None:
        raise NotImplementedError

    async def press(self, label: str, action: UserAction) -> VisibleMessage | None:
        for one in reversed(self._server.posts(self._chat["id"])[-20:]):
            for button in one.buttons:
                if label in button["text"]:
                    message = {**self._message(one.id, text=one.text), "from": BOT}
                    query = {"id": f"q{next(self._server.numbers)}", "from": self._me, "chat_instance": "c"}
                    query |= {"data": button["callback_data"], "message": message}
                    await self._server.add_update_for("callback_query", query, action)
                    return _visible_message(one)
        return None

    def visible_messages(self) -> list[VisibleMessage]:
        return [_visible_message(one) for one in self._server.posts(self._chat["id"])]

    def _text_fields(self, text: str, *, is_aside: bool = False) -> Wire:
        """Return the fields for a text message. In a group, the text mentions the bot unless it is a command."""
        named = f"{self._name} {text}" if self._name and not is_aside and not text.startswith("/") else text
        return {"text": named, "entities": entities(named)}

    async def _write(self, action: UserAction, **body: Any) -> str:
        number = next(self._server.numbers)
        await self._server.add_update_for("message", self._message(number, **body), action)
        return str(number)

    def _message(self, number: int, **body: Any) -> Wire:
        return {"message_id": number, "date": int(time.time()), "chat": self._chat, "from": self._me, **body}


def _private_chat(number: int) -> Wire:
    return {"id": number, "type": "private", "first_name": f"Person{number}"}


def _group_chat(number: int) -> Wire:
    return {"id": number, "type": "supergroup", "title": f"Group {-number}"}


def _visible_message(one: PostedMessage) -> VisibleMessage:
    return VisibleMessage(str(one.id), one.text, tuple(button["text"] for button in one.buttons))


@asynccontextmanager
async def fake_telegram(chats: int, groups: int, seed: int, kill_point: KillPoint) -> AsyncGenerator[FakeTelegram]:
    """Serve the fake Telegram until the context ends."""
    telegram = FakeTelegram(chats, groups, seed, kill_point)
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/bot{token}/{method}", telegram.handle_call)
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
