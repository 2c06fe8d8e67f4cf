"""A fake Telegram Bot API on a real socket. It refuses invalid requests as Telegram does, and can inject failures."""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.fakes.telegram_markup import MarkupError, find_text_fault, visible_text
from tests.fakes.telegram_payloads import (
    ANN,
    BOT,
    GROUP,
    MAX_FILE_BYTES,
    PRIVATE,
    REACTIONS,
    TOKEN,
    PostedMessage,
    TelegramFailure,
    TelegramRefusal,
    Wire,
    check_token,
    entities,
    read_body,
    read_buttons,
)
from tests.waiting import until


@dataclass
class TelegramServer:
    """A fake Telegram server for one bot. Tests add updates and inspect the messages that the bot posted."""

    address: str = ""
    updates: list[Wire] = field(default_factory=list[Wire])
    confirmed: int = 0
    posted: list[PostedMessage] = field(default_factory=list[PostedMessage])
    voice_messages: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])
    reactions: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    chat_actions: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    answered_queries: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    calls: list[str] = field(default_factory=list[str])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    failures: dict[str, list[TelegramFailure]] = field(default_factory=dict[str, list[TelegramFailure]])
    chats: dict[int, Wire] = field(default_factory=lambda: {1: PRIVATE, -1001: GROUP})
    topics: set[int] = field(default_factory=lambda: {7, 8})
    blocked: set[int] = field(default_factory=set[int])
    moved: dict[int, int] = field(default_factory=dict[int, int])
    refuses_markup: str = ""
    has_webhook: bool = False
    pollers: int = 0
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(100))
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    # User actions.

    async def write(self, text: str = "", *, chat: Wire = PRIVATE, author: Wire = ANN, **more: Any) -> int:
        """Send a message as a user and return its id."""
        number = next(self.numbers)
        body = {"text": text, "entities": entities(text)} if text else {}
        message: Wire = {"message_id": number, "date": int(time.time()), "chat": chat, "from": author, **body, **more}
        await self.add_update("message", message)
        return number

    async def edit(
        self, number: int, text: str, *, chat: Wire = PRIVATE, author: Wire = ANN, at: int | None = None
    ) -> None:
        now = int(time.time()) if at is None else at
        message: Wire = {"message_id": number, "date": now, "edit_date": now, "chat": chat, "from": author}
        await self.add_update("edited_message", {**message, "text": text, "entities": entities(text)})

    async def press(self, text: str, author: Wire = ANN) -> str:
        """Press the newest button with this label and return the callback query's id."""
        for one in reversed(self.posted):
            for button in one.buttons:
                if text in button["text"]:
                    return await self._press(one, button["callback_data"], author)
        raise AssertionError(f"no button {text!r}")

    async def _press(self, one: PostedMessage, value: str, author: Wire) -> str:
        name = f"q{next(self.numbers)}"
        thread = {"message_thread_id": one.thread, "is_topic_message": True} if one.thread else {}
        message = {
            "message_id": one.id,
            "date": 1,
            "chat": self.chats[one.chat],
            "from": BOT,
            "text": one.text,
            **thread,
        }
        query: Wire = {"id": name, "from": author, "chat_instance": "c", "data": value, "message": message}
        await self.add_update("callback_query", query)
        return name

    async def add_update(self, kind: str, body: Wire) -> None:
        """Make an update available to the bot."""
        async with self.changed:
            self.updates.append({"update_id": next(self.numbers), kind: body})
            self.changed.notify_all()

    async def until(self, is_true: Callable[[], bool]) -> None:
        await until(is_true, changed=self.changed, shows=lambda: self.posted)

    def fail(self, method: str, *failures: TelegramFailure) -> None:
        self.failures.setdefault(method.lower(), []).extend(failures)

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.posted]

    # The server.

    async def handle_call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"].lower()
        body = await read_body(request)
        trouble = self._next_failure(method, body)
        self.calls.append(method)
        try:
            check_token(request)
            if trouble is not None and not trouble.is_done:
                return await self._fail(trouble, request)
            result = await self._execute(method, body)
            async with self.changed:
                self.changed.notify_all()
            if trouble is not None:
                return await self._fail(trouble, request)
        except TelegramRefusal as refusal:
            answer: Wire = {"ok": False, "error_code": refusal.status, "description": str(refusal)}
            if refusal.parameters:
                answer["parameters"] = refusal.parameters
            return web.json_response(answer, status=refusal.status)
        return web.json_response({"ok": True, "result": result})

    def _next_failure(self, method: str, body: Wire) -> TelegramFailure | None:
        for trouble in self.failures.get(method, []):
            if trouble.chat is None or trouble.chat == int(body.get("chat_id", 0)):
                self.failures[method].remove(trouble)
                return trouble
        return None

    async def _fail(self, failure: TelegramFailure, request: web.Request) -> web.StreamResponse:
        if failure.wait_for is not None:
            await failure.wait_for.wait()
        if failure.drops_connection:
            assert request.transport is not None
            request.transport.abort()
        if failure.html:
            return web.Response(text="<html>Bad Gateway</html>", status=502, content_type="text/html")
        if failure.retry_after:
            wait = failure.retry_after
            raise TelegramRefusal(429, f"Too Many Requests: retry after {wait}", retry_after=wait)
        raise TelegramRefusal(failure.status or 500, "Internal Server Error")

    async def _execute(self, method: str, body: Wire) -> Any:
        match method:
            case "getme":
                return BOT
            case "getupdates":
                return await self._get_updates(body)
            case "sendmessage":
                return self._send(body)
            case "editmessagetext":
                return self._edit(body)
            case "sendvoice" | "senddocument":
                self._chat(body)
                self.voice_messages.append((method, body["file"]))
                return self._message(next(self.numbers), self._chat(body))
            case "sendchataction":
                self.chat_actions.append((self._chat(body)["id"], body["action"]))
            case "setmessagereaction":
                self._react(body)
            case "answercallbackquery":
                self._answer(body)
            case "getfile":
                return self._file(body["file_id"])
            case _:
                raise TelegramRefusal(404, "Not Found")
        return True

    async def _get_updates(self, body: Wire) -> list[Wire]:
        if self.has_webhook:
            raise TelegramRefusal(409, "Conflict: can't use getUpdates method while webhook is active")
        offset, wait = int(body.get("offset", 0)), int(body.get("timeout", 0))
        kinds = set(json.loads(body.get("allowed_updates", "[]")))
        self.pollers += 1
        number = self.pollers
        async with self.changed:
            self.confirmed = max(self.confirmed, offset)
            self.updates = [update for update in self.updates if update["update_id"] >= offset]
            self.changed.notify_all()
            try:
                async with asyncio.timeout(wait):
                    await self.changed.wait_for(lambda: bool(self.updates) or self.pollers != number)
            except TimeoutError:
                pass
            if self.pollers != number:
                raise TelegramRefusal(409, "Conflict: terminated by other getUpdates request")
            return [update for update in self.updates if not kinds or kinds & update.keys()][:100]

    def _chat(self, body: Wire) -> Wire:
        number = int(body["chat_id"])
        if number in self.moved:
            description = "Bad Request: group chat was upgraded to a supergroup chat"
            raise TelegramRefusal(400, description, migrate_to_chat_id=self.moved[number])
        if number not in self.chats:
            raise TelegramRefusal(400, "Bad Request: chat not found")
        if number in self.blocked:
            raise TelegramRefusal(403, "Forbidden: bot was blocked by the user")
        if "message_thread_id" in body and int(body["message_thread_id"]) not in self.topics:
            raise TelegramRefusal(400, "Bad Request: message thread not found")
        return self.chats[number]

    def _check_text(self, body: Wire) -> str:
        text = str(body.get("text", ""))
        if body.get("parse_mode") == "HTML":
            if self.refuses_markup:
                raise TelegramRefusal(400, self.refuses_markup)
            try:
                text = visible_text(text)
            except MarkupError as error:
                raise TelegramRefusal(400, f"Bad Request: can't parse entities: {error}") from error
        else:
            assert "parse_mode" not in body, "only HTML is supported"
        text = text.strip()
        if fault := find_text_fault(text, str(body["text"])):
            raise TelegramRefusal(400, fault)
        return text

    def _send(self, body: Wire) -> Wire:
        chat, text, buttons = self._chat(body), self._check_text(body), read_buttons(body)
        reply = json.loads(body["reply_parameters"])["message_id"] if "reply_parameters" in body else None
        thread = int(body["message_thread_id"]) if "message_thread_id" in body else None
        one = PostedMessage(next(self.numbers), chat["id"], thread, text, body["text"], buttons, reply)
        self.posted.append(one)
        return self._message(one.id, chat, text)

    def _edit(self, body: Wire) -> Wire:
        chat = self._chat(body)
        number = int(body["message_id"])
        one = next((one for one in reversed(self.posted) if (one.id, one.chat) == (number, chat["id"])), None)
        if one is None:
            raise TelegramRefusal(400, "Bad Request: message to edit not found")
        text, buttons = self._check_text(body), read_buttons(body)
        if (body["text"], buttons) == (one.html, one.buttons):
            raise TelegramRefusal(
                400, "Bad Request: message is not modified: specified new message content is the same"
            )
        one.text, one.html, one.buttons = text, body["text"], buttons
        one.edits += 1
        return self._message(number, chat, text)

    def _message(self, number: int, chat: Wire, text: str = "") -> Wire:
        return {"message_id": number, "date": int(time.time()), "chat": chat, "from": BOT, "text": text}

    def _react(self, body: Wire) -> None:
        self._chat(body)
        signs = [reaction["emoji"] for reaction in json.loads(body.get("reaction", "[]"))]
        if len(signs) > 1 or not REACTIONS.issuperset(signs):
            raise TelegramRefusal(400, "Bad Request: REACTION_INVALID")
        self.reactions.append((int(body["message_id"]), "".join(signs)))

    def _answer(self, body: Wire) -> None:
        if not str(body["callback_query_id"]).startswith("q"):
            raise TelegramRefusal(
                400, "Bad Request: query is too old and response timeout expired or query ID is invalid"
            )
        self.answered_queries.append((body["callback_query_id"], body.get("text", "")))

    def _file(self, name: str) -> Wire:
        if name not in self.files:
            raise TelegramRefusal(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        size = len(self.files[name])
        if size > MAX_FILE_BYTES:
            raise TelegramRefusal(400, "Bad Request: file is too big")
        return {"file_id": name, "file_unique_id": name, "file_size": size, "file_path": f"files/{name}"}

    async def download(self, request: web.Request) -> web.StreamResponse:
        self.calls.append("download")
        trouble = self._next_failure("download", {})
        if request.match_info["token"] != TOKEN:
            return web.Response(status=404)
        if trouble is not None:
            if trouble.wait_for is None:
                return web.Response(status=trouble.status)
            await trouble.wait_for.wait()
        return web.Response(body=self.files[request.match_info["name"]])


@asynccontextmanager
async def telegram_server() -> AsyncGenerator[TelegramServer]:
    """Serve a fake Telegram Bot API until the context exits."""
    telegram = TelegramServer()
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/bot{token}/{method}", telegram.handle_call)
    app.router.add_get("/file/bot{token}/files/{name}", telegram.download)
    server = TestServer(app)
    await server.start_server(access_log=None)  # the access log would contain the token
    telegram.address = str(server.make_url("")).rstrip("/")
    try:
        yield telegram
    finally:
        telegram.pollers += 1  # pending getUpdates requests are ended
        async with telegram.changed:
            telegram.changed.notify_all()
        await server.close()
