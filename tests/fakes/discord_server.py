"""A fake Discord: REST API, gateway and files over real sockets. Rejects invalid requests; can inject failures."""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from tests.fakes.discord_gateway import DiscordGateway
from tests.fakes.discord_payloads import (
    ANN,
    BOT,
    DIRECT,
    GENERAL,
    GUILD,
    KNOWN_EMOJI,
    ROBOT,
    THREAD,
    Json,
    application,
    channel,
    error_body,
    find_fault,
    is_direct,
    member,
    message,
    now,
    snowflake,
)
from tests.waiting import until

TOKEN = "the.bot.token"


def json_response(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """Return a JSON response with Discord's exact content type."""
    return web.Response(
        body=json.dumps(body).encode(), status=status, headers={"Content-Type": "application/json", **(headers or {})}
    )


@dataclass
class InjectedFailure:
    """Fails the next matching request. If `is_processed`, the request takes effect before the disconnect."""

    method: str
    path_part: str
    status: int
    body: Json
    headers: dict[str, str]
    is_processed: bool = False


class DiscordServer:
    """A fake Discord. `messages` holds all current messages; `reactions`, `typing` and `acks` record other requests."""

    def __init__(self) -> None:
        self.gateway = DiscordGateway(TOKEN)
        self.base = ""
        self.root = ""
        self.messages: dict[str, Json] = {}
        self.edits: list[tuple[str, str]] = []
        self.reactions: list[tuple[str, str]] = []
        self.typing: list[str] = []
        self.acks: list[tuple[str, Json]] = []
        self.requests: list[tuple[str, str]] = []
        self.pings: list[str] = []
        self.uploads: list[bytes] = []
        self.files: dict[str, bytes] = {}
        self.slow: dict[str, asyncio.Event] = {}  # files and paths whose requests wait for the event
        self.failures: list[InjectedFailure] = []
        self.tokens: dict[str, str] = {}
        self.channels = {DIRECT, GENERAL, THREAD}
        self._nonces: dict[str, str] = {}
        self._numbers = itertools.count(1)

    # Methods for tests.

    async def until(self, is_true: Callable[[], bool]) -> None:
        await until(is_true, changed=self.gateway.changed, shows=lambda: self.messages)

    @property
    def bot_messages(self) -> list[Json]:
        return [one for one in self.messages.values() if one["author"]["id"] == BOT]

    @property
    def bot_texts(self) -> list[str]:
        return [one["content"] for one in self.bot_messages]

    async def write(self, text: str, channel_id: str = DIRECT, author: Json = ANN, **more: Any) -> str:
        """Send a message as a user."""
        new = message(snowflake(next(self._numbers)), channel_id, author, text, **more)
        self.messages[new["id"]] = new
        await self.gateway.dispatch("MESSAGE_CREATE", new)
        return new["id"]

    async def edit(self, number: str, text: str, **more: Any) -> None:
        self.messages[number] |= {"content": text, "edited_timestamp": now(), **more}
        await self.gateway.dispatch("MESSAGE_UPDATE", self.messages[number])

    async def delete(self, number: str) -> None:
        gone = self.messages.pop(number)
        where = {"guild_id": GUILD} if "guild_id" in gone else {}
        await self.gateway.dispatch("MESSAGE_DELETE", {"id": number, "channel_id": gone["channel_id"], **where})

    async def press(self, sent_message: Json, label: str, author: Json = ANN) -> str:
        """Press a button on a message as a user."""
        buttons = [button for row in sent_message["components"] for button in row["components"]]
        button = next(button for button in buttons if label in button["label"])
        number, place = snowflake(next(self._numbers)), sent_message["channel_id"]
        self.tokens[number] = f"secret-{number}"
        who = {"user": author} if is_direct(place) else {"member": {**member(), "user": author, "permissions": "0"}}
        where: Json = (
            {} if is_direct(place) else {"guild_id": GUILD, "guild": {"id": GUILD, "features": [], "locale": "en"}}
        )
        pressed: Json = {
            "id": number, "application_id": application()["id"], "type": 3, "token": self.tokens[number], "version": 1,
            "data": {"custom_id": button["custom_id"], "component_type": 2}, "channel_id": place,
            "message": sent_message, "channel": {**channel(place), "permissions": "0"}, "locale": "en-US",
            "entitlements": [],
            "authorizing_integration_owners": {}, "attachment_size_limit": 1, "app_permissions": "0", **who, **where,
        }  # fmt: skip
        await self.gateway.dispatch("INTERACTION_CREATE", pressed)
        return number

    def add_file(self, name: str, body: bytes, media_type: str | None, *, size: int | None = None) -> Json:
        """Store a file on the fake CDN and return it as an attachment."""
        number = snowflake(next(self._numbers))
        self.files[number] = body
        url = f"{self.root}/cdn/{number}"
        kind = {"content_type": media_type} if media_type else {}
        length = len(body) if size is None else size
        return {"id": number, "filename": name, "size": length, "url": url, "proxy_url": url, **kind}

    def fail(
        self, method: str, path_part: str, status: int, code: int = 0, text: str = "", *, is_processed: bool = False
    ) -> None:
        self.failures.append(InjectedFailure(method, path_part, status, error_body(code, text), {}, is_processed))

    def rate_limit(
        self, method: str, path_part: str, seconds: float, *, is_global: bool = False, is_ban: bool = False
    ) -> None:
        """Respond to the next matching request with 429. A ban is Cloudflare's response, without a JSON body."""
        body: Json = {"message": "You are being rate limited.", "retry_after": seconds, "global": is_global}
        headers = {"Retry-After": str(max(1, round(seconds))), "X-RateLimit-Scope": "global" if is_global else "user"}
        self.failures.append(
            InjectedFailure(method, path_part, 429, body, headers if is_ban else {**headers, "Via": "1.1 google"})
        )

    # The server.

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator["DiscordServer"]:
        app = web.Application(middlewares=[self._handle_request], client_max_size=30 * 1024 * 1024)
        api = "/api/v10"
        place = api + "/channels/{channel}"
        app.router.add_get("/gateway/", self.gateway.serve)
        app.router.add_get("/cdn/{file}", self._file)
        app.router.add_get(api + "/users/@me", self._static_response(ROBOT))
        app.router.add_get(api + "/oauth2/applications/@me", self._static_response(application()))
        app.router.add_get(api + "/gateway/bot", self._gateway_url)
        app.router.add_get(place, self._channel)
        app.router.add_get(place + "/messages", self._history)
        app.router.add_post(place + "/messages", self._create)
        app.router.add_patch(place + "/messages/{message}", self._edit)
        app.router.add_post(place + "/typing", self._typing)
        app.router.add_put(place + "/messages/{message}/reactions/{emoji}/@me", self._react)
        app.router.add_delete(place + "/messages/{message}/reactions/{emoji}/@me", self._unreact)
        app.router.add_post(api + "/interactions/{interaction}/{token}/callback", self._callback)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        self.root = f"http://127.0.0.1:{port}"
        self.base = self.root + api
        self.gateway.url = f"ws://127.0.0.1:{port}/gateway/"
        try:
            yield self
        finally:
            self.gateway.drop()
            await runner.cleanup()

    @web.middleware
    async def _handle_request(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if not request.path.startswith("/api/"):
            assert "Authorization" not in request.headers
            return await handler(request)
        self.requests.append((request.method, request.path))
        self.gateway.changed.set()
        for part, may_continue in self.slow.items():
            if part in request.path:
                await may_continue.wait()
        assert request.headers["User-Agent"].startswith("DiscordBot (")
        if "/interactions/" not in request.path and request.headers.get("Authorization") != f"Bot {TOKEN}":
            return json_response(error_body(0, "401: Unauthorized"), status=401)
        failure = next(
            (one for one in self.failures if one.method == request.method and one.path_part in request.path), None
        )
        if failure is not None:
            self.failures.remove(failure)
            self.gateway.changed.set()
            if failure.is_processed:
                await handler(request)
                assert request.transport is not None
                request.transport.abort()
            return json_response(failure.body, status=failure.status, headers=failure.headers)
        try:
            answer = await handler(request)
        except web.HTTPException as error:
            return json_response(json.loads(error.text or "{}"), status=error.status)
        bucket = f"{request.method}-{request.match_info.get('channel', '')}"
        limits = {"Limit": "50", "Remaining": "49", "Reset": str(time.time() + 1), "Reset-After": "1", "Bucket": bucket}
        answer.headers.update({f"X-RateLimit-{name}": value for name, value in limits.items()})
        self.gateway.changed.set()
        return answer

    def _static_response(self, body: Json) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def respond(request: web.Request) -> web.Response:
            return json_response(body)

        return respond

    async def _gateway_url(self, request: web.Request) -> web.Response:
        start = {
            "total": 1000,
            "remaining": self.gateway.session_starts_left,
            "reset_after": 1000,
            "max_concurrency": 1,
        }
        return json_response({"url": self.gateway.url, "shards": 1, "session_start_limit": start})

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["file"]
        if name in self.slow:
            await self.slow[name].wait()
        return web.Response(body=self.files[name])

    async def _channel(self, request: web.Request) -> web.Response:
        return json_response(channel(self._channel_id(request)))

    async def _history(self, request: web.Request) -> web.Response:
        place, after = self._channel_id(request), int(request.query.get("after", "0"))
        found = [one for one in self.messages.values() if one["channel_id"] == place and int(one["id"]) > after]
        found = sorted(found, key=lambda one: int(one["id"]))[: int(request.query.get("limit", "50"))]
        gateway_only = ("guild_id", "member")
        bare = [{name: one[name] for name in one if name not in gateway_only} for one in reversed(found)]
        return json_response(bare)

    async def _create(self, request: web.Request) -> web.Response:
        place = self._channel_id(request)
        if request.content_type == "multipart/form-data":
            form = await request.post()
            body: Json = json.loads(str(form["payload_json"]))
            file = form["files[0]"]
            assert isinstance(file, web.FileField)
            self.uploads.append(file.file.read())
        else:
            body = await request.json()
        if (fault := find_fault(body, set(self.messages))) is not None:
            return json_response(fault, status=400)
        nonce = str(body.get("nonce", ""))
        if nonce and body.get("enforce_nonce") and nonce in self._nonces:
            return json_response(self.messages[self._nonces[nonce]])
        if "@everyone" in body["content"] and body.get("allowed_mentions", {}).get("parse") != []:
            self.pings.append(body["content"])
        number = snowflake(next(self._numbers))
        rows: list[Json] = body.get("components") or []
        new = message(number, place, ROBOT, body["content"].strip(), components=rows, nonce=nonce)
        if "message_reference" in body:
            new |= {"message_reference": {"channel_id": place, **body["message_reference"]}}
        self.messages[number] = new
        if nonce:
            self._nonces[nonce] = number
        await self.gateway.dispatch("MESSAGE_CREATE", new)
        return json_response(new)

    async def _edit(self, request: web.Request) -> web.Response:
        old = self._find_message(request)
        if old["author"]["id"] != BOT:
            return json_response(error_body(50005, "Cannot edit a message authored by another user"), status=403)
        body: Json = await request.json()
        if (fault := find_fault(body, set(self.messages))) is not None:
            return json_response(fault, status=400)
        old |= {"content": body["content"].strip(), "components": body["components"], "edited_timestamp": now()}
        self.edits.append((old["id"], old["content"]))
        return json_response(old)

    async def _typing(self, request: web.Request) -> web.Response:
        self.typing.append(self._channel_id(request))
        return web.Response(status=204)

    async def _react(self, request: web.Request) -> web.Response:
        sign = unquote(request.match_info["emoji"])
        if sign not in KNOWN_EMOJI:
            return json_response(error_body(10014, "Unknown Emoji"), status=400)
        self.reactions.append((self._find_message(request)["id"], sign))
        return web.Response(status=204)

    async def _unreact(self, request: web.Request) -> web.Response:
        sign = self._find_message(request)["id"], unquote(request.match_info["emoji"])
        if sign not in self.reactions:
            return json_response(error_body(10014, "Unknown Emoji"), status=400)
        self.reactions.remove(sign)
        return web.Response(status=204)

    async def _callback(self, request: web.Request) -> web.Response:
        number = request.match_info["interaction"]
        if self.tokens.get(number) != request.match_info["token"]:
            return json_response(error_body(10062, "Unknown interaction"), status=404)
        if any(known == number for known, _ in self.acks):
            return json_response(error_body(40060, "Interaction has already been acknowledged."), status=400)
        self.acks.append((number, await request.json()))
        return web.Response(status=204)

    def _channel_id(self, request: web.Request) -> str:
        place = request.match_info["channel"]
        if place not in self.channels:
            raise web.HTTPNotFound(text=json.dumps(error_body(10003, "Unknown Channel")))
        return place

    def _find_message(self, request: web.Request) -> Json:
        found = self.messages.get(request.match_info["message"])
        if found is None or found["channel_id"] != self._channel_id(request):
            raise web.HTTPNotFound(text=json.dumps(error_body(10008, "Unknown Message")))
        return found


def other_tasks() -> set["asyncio.Task[Any]"]:
    """Return all tasks except the current one."""
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}
