"""Slack's servers on a real socket: the Web API, Socket Mode and files, strict where Slack is."""

import asyncio
import hashlib
import hmac
import itertools
import json
import re
import time
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlencode

from aiohttp import WSMsgType, web

BOT_TOKEN = "xoxb-secret-bot-token"
APP_TOKEN = "xapp-secret-app-token"
BOT, BOT_ID, APP = "UBOT", "BBOT", "A1"
READS = ("users.info", "conversations.replies", "conversations.history", "files.info")
METADATA_NAME = re.compile(r"[a-z][a-z0-9_]*")
Json = dict[str, Any]


@dataclass
class Failure:
    """How a call fails. `is_done`: it is carried out before it fails; without a status the connection is cut."""

    error: str = ""
    status: int = 200
    retry_after: int | None = None
    is_done: bool = False
    needed: str = ""


@dataclass
class Envelope:
    """What was sent by Socket Mode; `acked` is set by its ack."""

    body: Json
    acked: asyncio.Event = field(default_factory=asyncio.Event)


class Refused(Exception):
    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class FakeSlack:
    """One workspace with a bot in it."""

    def __init__(self) -> None:
        self.url = ""
        self.people = {"UANN": "Ann", "UBOB": "Bob", BOT: "hark"}
        self.channels = {"C1", "C2", "DANN"}
        self.messages: dict[str, dict[str, Json]] = defaultdict(dict)
        self.files: dict[str, tuple[bytes, str]] = {}
        self.signs: list[tuple[str, str]] = []
        self.statuses: list[str] = []
        self.calls: list[tuple[str, Json]] = []
        self.failures: dict[str, deque[Failure]] = defaultdict(deque)
        self.pings: list[str] = []
        self.sockets: list[web.WebSocketResponse] = []
        self.connections = 0
        self.acks = 0
        self.file_requests: list[tuple[str, str]] = []
        self.tells_own = True
        self.answers_pings = True
        self.hangs_up = False
        self._envelopes: dict[str, Envelope] = {}
        self._waiting: list[Envelope] = []
        self._tickets: set[str] = set()
        self._transports: list[asyncio.Transport] = []
        self._numbers = itertools.count(1)
        self._changed = asyncio.Event()
        self.slow = asyncio.Event()
        self.slow.set()

    # The servers.

    def routes(self) -> web.Application:
        app = web.Application(client_max_size=50_000_000)
        app.router.add_route("*", "/api/{method}", self._api)
        app.router.add_get("/link", self._link)
        app.router.add_get("/files-pri/{name}", self._file)
        return app

    async def _api(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        wanted = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        if request.headers.get("Authorization") != f"Bearer {wanted}":
            return web.json_response({"ok": False, "error": "invalid_auth"})
        arguments: Json = dict(request.query)
        if "token" in arguments:
            return web.json_response({"ok": False, "error": "token_in_query"})
        if request.content_type == "application/json" and method not in READS:  # reads don't take JSON
            arguments.update(await request.json())
        self.calls.append((method, arguments))
        failure = self.failures[method].popleft() if self.failures[method] else None
        answer: Json = {}
        if failure is None or failure.is_done:
            await self.slow.wait()
            try:
                answer = {"ok": True, **self._do(method, arguments)}
            except Refused as error:
                answer = {"ok": False, "error": error.error}
        self._change()
        return web.json_response(answer) if failure is None else self._fail(request, failure)

    def _fail(self, request: web.Request, failure: Failure) -> web.StreamResponse:
        if failure.status == 429:
            headers = {} if failure.retry_after is None else {"Retry-After": str(failure.retry_after)}
            return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)
        if failure.status >= 500:
            return web.Response(status=failure.status, text="<html>oops</html>", content_type="text/html")
        if failure.error:
            return web.json_response({"ok": False, "error": failure.error, "needed": failure.needed})
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    def _do(self, method: str, given: Json) -> Json:
        known: dict[str, Callable[[Json], Json]] = {
            "auth.test": lambda _: {"user_id": BOT, "user": "hark", "bot_id": BOT_ID, "team_id": "T1"},
            "apps.connections.open": self._open,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "reactions.add": self._react,
            "reactions.remove": self._unreact,
            "users.info": self._user,
            "conversations.replies": self._replies,
            "conversations.history": self._history,
            "files.info": self._file_info,
            "assistant.threads.setStatus": self._status,
        }
        if method not in known:
            raise Refused("unknown_method")
        return known[method](given)

    def _open(self, _: Json) -> Json:
        ticket = f"ticket-{next(self._numbers)}"
        self._tickets.add(ticket)
        return {"url": f"{self.url.replace('http', 'ws')}/link?ticket={ticket}&app_id={APP}"}

    def _post(self, given: Json) -> Json:
        channel = self._channel(given)
        self._check(given)
        thread = given.get("thread_ts", "")
        if thread and thread not in self.messages[channel]:
            raise Refused("thread_not_found")
        metadata = given.get("metadata")
        if metadata is not None and not METADATA_NAME.fullmatch(metadata["event_type"]):
            raise Refused("invalid_metadata_format")
        message: Json = {
            "type": "message", "ts": self.ts(), "user": BOT, "bot_id": BOT_ID, "text": given.get("text", ""),
            "blocks": given.get("blocks") or [], "unfurl_links": given.get("unfurl_links", True),
            "unfurl_media": given.get("unfurl_media", True), "metadata": metadata,
            **({"thread_ts": thread} if thread else {}),
        }  # fmt: skip
        self.messages[channel][message["ts"]] = message
        if self.tells_own:
            self.emit({**message, "channel": channel})
        return {"channel": channel, "ts": message["ts"], "message": message}

    def _update(self, given: Json) -> Json:
        channel = self._channel(given)
        message = self.messages[channel].get(given.get("ts", ""))
        if message is None:
            raise Refused("message_not_found")
        if message["user"] != BOT:
            raise Refused("cant_update_message")
        if len(given.get("text", "")) > 4000:
            raise Refused("msg_too_long")
        self._check(given)
        old = dict(message)
        message["text"] = given.get("text", message["text"])
        if "blocks" in given:
            message["blocks"] = given["blocks"]
        if self.tells_own:
            self.emit(_changed(channel, message, old))
        return {"channel": channel, "ts": message["ts"], "text": message["text"]}

    def _check(self, given: Json) -> None:
        text, blocks = str(given.get("text", "")), _listed(given, "blocks")
        if not text.strip() and not blocks:
            raise Refused("no_text")
        if len(text) > 40_000:
            raise Refused("msg_too_long")
        if len(blocks) > 50:
            raise Refused("invalid_blocks")
        names = [element["action_id"] for block in blocks for element in _listed(block, "elements")]
        if len(set(names)) != len(names):
            raise Refused("invalid_blocks")
        for block in blocks:
            self._check_block(block)
        shown = text if not blocks else "".join(block.get("text", {}).get("text", "") for block in blocks)
        if len(shown) > 13_200:
            raise Refused("msg_blocks_too_long")
        self.pings += re.findall(r"<(?:!|@|#)[^>]*>", shown)

    def _check_block(self, block: Json) -> None:
        if block["type"] == "section":
            if not 1 <= len(block["text"]["text"]) <= 3000 or block["text"]["type"] not in ("mrkdwn", "plain_text"):
                raise Refused("invalid_blocks")
        elif block["type"] == "actions":
            elements = block["elements"]
            if not 1 <= len(elements) <= 25:
                raise Refused("invalid_blocks")
            for element in elements:
                if element["type"] != "button" or element["text"]["type"] != "plain_text":
                    raise Refused("invalid_blocks")
                if not 1 <= len(element["text"]["text"]) <= 75 or len(element["value"]) > 2000:
                    raise Refused("invalid_blocks")
        else:
            raise Refused("invalid_blocks")

    def _react(self, given: Json) -> Json:
        message = self._message(self._channel(given), given.get("timestamp", ""))
        if not re.fullmatch(r"[a-z0-9_+-]+", given.get("name", "")):
            raise Refused("invalid_name")
        if (message["ts"], given["name"]) in self.signs:
            raise Refused("already_reacted")
        self.signs.append((message["ts"], given["name"]))
        return {}

    def _unreact(self, given: Json) -> Json:
        if (given["timestamp"], given["name"]) not in self.signs:
            raise Refused("no_reaction")
        self.signs.remove((given["timestamp"], given["name"]))
        return {}

    def _user(self, given: Json) -> Json:
        name = self.people.get(given.get("user", ""))
        if name is None:
            raise Refused("user_not_found")
        return {"user": {"id": given["user"], "name": name.lower(), "profile": {"display_name": name}, "tz": None}}

    def _replies(self, given: Json) -> Json:
        channel = self._channel(given)
        root = self._message(channel, given.get("ts", ""))
        replies = [one for one in self.messages[channel].values() if one.get("thread_ts") == root["ts"] != one["ts"]]
        users = list(dict.fromkeys(one["user"] for one in replies))
        first = {**root, "thread_ts": root["ts"], "reply_users": users} if replies else root
        return {"messages": [first, *replies][: int(given.get("limit", 1000))]}

    def _history(self, given: Json) -> Json:
        channel = self._channel(given)
        found = [one for one in self.messages[channel].values() if not one.get("thread_ts")]
        return {"messages": found[::-1][: int(given.get("limit", 100))]}

    def _file_info(self, given: Json) -> Json:
        name = given.get("file", "")
        if name not in self.files:
            raise Refused("file_not_found")
        return {"file": self.file(name)}

    def _status(self, given: Json) -> Json:
        self._message(self._named(given.get("channel_id", "")), given.get("thread_ts", ""))
        self.statuses.append(given["status"])
        return {}

    def _channel(self, given: Json) -> str:
        return self._named(given.get("channel", ""))

    def _named(self, channel: str) -> str:
        if channel not in self.channels:
            raise Refused("channel_not_found")
        return channel

    def _message(self, channel: str, ts: str) -> Json:
        if ts not in self.messages[channel]:
            raise Refused("message_not_found")
        return self.messages[channel][ts]

    async def _file(self, request: web.Request) -> web.StreamResponse:
        self.file_requests.append((request.match_info["name"], request.headers.get("Authorization", "")))
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            raise web.HTTPFound(f"{self.url}/login")
        await self.slow.wait()
        content, media_type = self.files[request.match_info["name"]]
        return web.Response(body=content, content_type=media_type)

    # Socket Mode.

    async def _link(self, request: web.Request) -> web.StreamResponse:
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:  # an address is good for one connection
            return web.Response(status=408)
        self._tickets.discard(ticket)
        socket = web.WebSocketResponse(autoping=self.answers_pings)
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": len(self.sockets) + 1, "connection_info": {}})
        self.sockets.append(socket)
        self._transports.append(cast("asyncio.Transport", request.transport))
        self.connections += 1
        self._change()
        if self.hangs_up:
            await socket.close()
        waiting, self._waiting = self._waiting, []
        for envelope in waiting:
            await socket.send_json(envelope.body)
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self._ack(json.loads(message.data))
        finally:
            if socket in self.sockets:
                self.sockets.remove(socket)
            self._change()
        return socket

    def _ack(self, answer: Json) -> None:
        envelope = self._envelopes[answer["envelope_id"]]
        self.acks += 1
        envelope.acked.set()
        self._change()

    def _put(self, kind: str, payload: Json, retry: int = 0) -> Envelope:
        name = f"e-{next(self._numbers)}"
        body: Json = {"envelope_id": name, "type": kind, "accepts_response_payload": False, "payload": payload}
        if retry:
            body |= {"retry_attempt": retry, "retry_reason": "timeout"}
        envelope = self._envelopes[name] = Envelope(body)
        if self.sockets:
            asyncio.get_running_loop().create_task(self._write(self.sockets[-1], envelope))
        else:
            self._waiting.append(envelope)
        return envelope

    async def _write(self, socket: web.WebSocketResponse, envelope: Envelope) -> None:
        try:
            await socket.send_json(envelope.body)
        except ConnectionError:
            self._waiting.append(envelope)

    def emit(self, event: Json) -> Envelope:
        """Send an event."""
        return self._put("events_api", self.callback(event))

    def callback(self, event: Json) -> Json:
        """Return the body of an event, as HTTP and Socket Mode have it."""
        return {
            "token": "legacy", "team_id": "T1", "api_app_id": APP, "type": "event_callback", "event": event,
            "event_id": f"Ev{next(self._numbers)}", "event_time": int(time.time()), "is_ext_shared_channel": False,
            "authorizations": [{"enterprise_id": None, "team_id": "T1", "user_id": BOT, "is_bot": True}],
        }  # fmt: skip

    def again(self, envelope: Envelope) -> Envelope:
        """Deliver the same once more."""
        return self._put(envelope.body["type"], envelope.body["payload"], retry=1)

    async def ask_to_reconnect(self, reason: str = "refresh_requested") -> None:
        await self.sockets[-1].send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "x"}})

    def drop(self) -> None:
        """Cut every connection, without a word."""
        for transport in self._transports:
            transport.abort()
        self._transports = []

    # What people do.

    def ts(self) -> str:
        return f"{int(time.time())}.{next(self._numbers):06d}"

    def say(self, text: str, channel: str = "DANN", user: str = "UANN", thread: str = "", **more: Any) -> Envelope:
        """Write something; in direct messages and channels as Slack's clients do."""
        ts = self.ts()
        message: Json = {
            "type": "message", "ts": ts, "user": user, "text": text, "client_msg_id": f"c-{ts}", "team": "T1",
            "blocks": [{"type": "rich_text", "elements": []}], "edited": None, **more,
            **({"thread_ts": thread, "parent_user_id": self.messages[channel][thread]["user"]} if thread else {}),
        }  # fmt: skip
        self.messages[channel][ts] = message
        kind = "im" if channel.startswith("D") else "channel"
        return self.emit({**message, "channel": channel, "event_ts": ts, "channel_type": kind})

    def rewrite(self, envelope: Envelope, text: str) -> Envelope:
        event = envelope.body["payload"]["event"]
        message = self.messages[event["channel"]][event["ts"]]
        old = dict(message)
        message["text"] = text
        return self.emit(_changed(event["channel"], message, old))

    def delete(self, envelope: Envelope) -> Envelope:
        event = envelope.body["payload"]["event"]
        old = self.messages[event["channel"]].pop(event["ts"])
        return self.emit({
            "type": "message", "subtype": "message_deleted", "hidden": True, "channel": event["channel"],
            "ts": self.ts(), "deleted_ts": event["ts"], "previous_message": old,
        })  # fmt: skip

    def press(self, label: str, user: str = "UANN") -> Envelope:
        """Press the newest button with these words."""
        for channel, message in reversed([(c, m) for c, ms in self.messages.items() for m in ms.values()]):
            for block in _listed(message, "blocks"):
                for element in _listed(block, "elements"):
                    if label in str(element.get("text", "")):
                        return self._put("interactive", self.pressing(channel, message, element, user))
        raise AssertionError(f"no button {label}")

    def pressing(self, channel: str, message: Json, element: Json, user: str = "UANN") -> Json:
        action = {key: element[key] for key in ("action_id", "text", "value", "type")}
        return {
            "type": "block_actions", "team": {"id": "T1"}, "user": {"id": user, "name": user.lower()},
            "api_app_id": APP, "container": {"type": "message", "message_ts": message["ts"], "channel_id": channel},
            "channel": {"id": channel, "name": "x"}, "message": message, "trigger_id": "1", "token": "legacy",
            "response_url": f"{self.url}/respond", "actions": [{**action, "action_ts": self.ts(), "block_id": "b"}],
        }  # fmt: skip

    def file(self, name: str, /, **more: Any) -> Json:
        """Return a file of `files` as events have it."""
        content, media_type = self.files[name]
        return {
            "id": name, "name": name, "mimetype": media_type, "size": len(content), "mode": "hosted",
            "is_external": False, "url_private": f"{self.url}/files-pri/{name}",
            "url_private_download": f"{self.url}/files-pri/{name}", "preview": None, **more,
        }  # fmt: skip

    # What is seen.

    def ours(self, channel: str = "DANN") -> list[Json]:
        return [message for message in self.messages[channel].values() if message["user"] == BOT]

    def shown(self, channel: str = "DANN") -> list[str]:
        """Return our messages as people see them."""
        return [_words(message) for message in self.ours(channel)]

    async def until(self, is_true: Callable[[], bool]) -> None:
        while not is_true():
            self._changed.clear()
            await self._changed.wait()

    def _change(self) -> None:
        self._changed.set()


def _listed(value: Json, name: str) -> list[Json]:
    return cast("list[Json]", value.get(name) or [])


def _words(message: Json) -> str:
    sections = [str(block["text"]["text"]) for block in _listed(message, "blocks") if block["type"] == "section"]
    return "\n".join(sections) if sections else message["text"]


def _changed(channel: str, message: Json, old: Json) -> Json:
    return {
        "type": "message", "subtype": "message_changed", "hidden": True, "channel": channel,
        "ts": f"{time.time():.6f}", "message": dict(message), "previous_message": old, "channel_type": "im",
    }  # fmt: skip


def signed(secret: str, body: bytes, at: float | None = None) -> dict[str, str]:
    """Return the headers that Slack puts to a request."""
    stamp = str(int(time.time() if at is None else at))
    digest = hmac.new(secret.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}


def as_form(payload: Json) -> bytes:
    """Return an interactive payload as HTTP has it."""
    return urlencode({"payload": json.dumps(payload)}).encode()


@asynccontextmanager
async def slack_server() -> AsyncGenerator[FakeSlack]:
    slack = FakeSlack()
    runner = web.AppRunner(slack.routes(), shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    slack.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield slack
    finally:
        slack.slow.set()
        slack.drop()
        await runner.cleanup()
