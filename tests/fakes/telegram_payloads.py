"""Telegram's payloads: messages, errors and injected failures."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any, cast

from aiohttp import web

Wire = dict[str, Any]
TOKEN = "123456:AAbbCCddEEffGGhhIIjjKKllMMnnOOppQQr"
BOT: Wire = {"id": 123456, "is_bot": True, "first_name": "Hark", "username": "HarkTestBot"}
ANN: Wire = {"id": 1, "is_bot": False, "first_name": "Ann", "last_name": "Bee", "username": "ann"}
PRIVATE: Wire = {"id": 1, "type": "private", "first_name": "Ann"}
GROUP: Wire = {"id": -1001, "type": "supergroup", "title": "Friends", "is_forum": True}
REACTIONS = {"👀", "⚡", "✍", "👌", "😴", "🕊", "👍", "👎"}  # the members of Telegram's fixed set that the tests use
MAX_FILE_BYTES = 20 * 1024 * 1024


class TelegramRefusal(Exception):
    """An error response from the fake Telegram."""

    def __init__(self, status: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.status = status
        self.parameters = parameters


@dataclass
class TelegramFailure:
    """An injected failure for the next call to a method. With `is_done`, the call takes effect first."""

    status: int = 0
    retry_after: int = 0
    drops_connection: bool = False
    is_done: bool = False
    html: bool = False
    chat: int | None = None
    wait_for: asyncio.Event | None = None


@dataclass
class PostedMessage:
    """A message from the bot, as users currently see it."""

    id: int
    chat: int
    thread: int | None
    text: str
    html: str
    buttons: list[Wire]
    reply_to: int | None = None
    edits: int = 0


def check_token(request: web.Request) -> None:
    if request.match_info["token"] != TOKEN:
        raise TelegramRefusal(401, "Unauthorized")


async def read_body(request: web.Request) -> Wire:
    if request.content_type != "multipart/form-data":
        return cast("Wire", dict(await request.post()))
    body: Wire = {}
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            body["file"] = value.file.read()
        else:
            body[name] = value
    return body


def read_buttons(body: Wire) -> list[Wire]:
    rows: list[list[Wire]] = json.loads(body["reply_markup"])["inline_keyboard"] if "reply_markup" in body else []
    buttons = [button for row in rows for button in row]
    for button in buttons:
        if not 1 <= len(button["callback_data"].encode()) <= 64:
            raise TelegramRefusal(400, "Bad Request: BUTTON_DATA_INVALID")
        if not button["text"]:
            raise TelegramRefusal(400, "Bad Request: inline keyboard button text is empty")
    return buttons


def entities(text: str) -> list[Wire]:
    """Return the mentions and commands in a text as entities with Telegram's offsets."""
    found: list[Wire] = []
    place = 0
    for word in text.split(" "):
        length = len(word.encode("utf-16-le")) // 2
        if word.startswith(("@", "/")) and len(word) > 1:
            kind = "mention" if word[0] == "@" else "bot_command"
            found.append({"type": kind, "offset": place, "length": len(word.rstrip(",:!"))})
        place += length + 1
    return found
