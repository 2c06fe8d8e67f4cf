"""A fake Slack on a real socket: the Web API, Socket Mode and files, as strict as Slack."""

import asyncio
import json
import time
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from aiohttp import WSMsgType, web

from tests.fakes.slack_payloads import (
    APP,
    APP_TOKEN,
    BOT,
    BOT_TOKEN,
    READ_METHODS,
    Json,
    SlackRefusal,
    list_field,
    message_changed,
    visible_text,
)
from tests.fakes.slack_workspace import SlackWorkspace
from tests.waiting import until


@dataclass
class SlackFailure:
    """An injected failure for a call. With `is_done`, the call takes effect first.

    The connection is closed unless `error` or an error status is set.
    """

    error: str = ""
    status: int = 200
    retry_after: int | None = None
    is_done: bool = False
    needed: str = ""


@dataclass
class Envelope:
    """An envelope sent over Socket Mode. `acked` is set when the client acknowledges it."""

    body: Json
    acked: asyncio.Event = field(default_factory=asyncio.Event)


class SlackServer(SlackWorkspace):
    """The fake servers of one Slack workspace, and the actions of its users."""

    def __init__(self) -> None:
        super().__init__(self.emit)
        self.calls: list[tuple[str, Json]] = []
        self.failures: dict[str, deque[SlackFailure]] = defaultdict(deque)
        self.sockets: list[web.WebSocketResponse] = []
        self.connections = 0
        self.acks = 0
        self.file_requests: list[tuple[str, str]] = []
        self.answers_pings = True
        self.socket_pings = 0
        self.socket_pongs = 0
        self.closes_new_sockets = False
        self._envelopes: dict[str, Envelope] = {}
        self._undelivered: list[Envelope] = []
        self._transports: list[asyncio.Transport] = []
        self._changed = asyncio.Event()
        self.slow = asyncio.Event()
        self.slow.set()

    # The servers.

    def routes(self) -> web.Application:
        app = web.Application(client_max_size=50_000_000)
        app.router.add_route("*", "/api/{method}", self._api)
        app.router.add_get("/link", self._socket_mode)
        app.router.add_get("/files-pri/{name}", self._file)
        app.router.add_post("/upload/{name}", self._upload)
        return app

    async def _api(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        wanted = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        if request.headers.get("Authorization") != f"Bearer {wanted}":
            return web.json_response({"ok": False, "error": "invalid_auth"})
        arguments: Json = dict(request.query)
        if "token" in arguments:
            return web.json_response({"ok": False, "error": "token_in_query"})
        if request.content_type == "application/json" and method not in READ_METHODS:  # read methods don't accept JSON
            arguments.update(await request.json())
        self.calls.append((method, arguments))
        failure = self.failures[method].popleft() if self.failures[method] else None
        answer: Json = {}
        if failure is None or failure.is_done:
            await self.slow.wait()
            try:
                answer = {"ok": True, **self.call(method, arguments)}
            except SlackRefusal as error:
                answer = {"ok": False, "error": error.error}
        self._notify()
        return web.json_response(answer) if failure is None else self._failure_response(request, failure)

    def _failure_response(self, request: web.Request, failure: SlackFailure) -> web.StreamResponse:
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

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        name, content = request.match_info["name"], await request.read()
        if "Authorization" in request.headers or self.uploads.get(name) != len(content):
            return web.Response(status=400)
        self.files[name] = (content, "audio/ogg")
        return web.Response(text="OK")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        self.file_requests.append((request.match_info["name"], request.headers.get("Authorization", "")))
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            raise web.HTTPFound(f"{self.url}/login")
        await self.slow.wait()
        content, media_type = self.files[request.match_info["name"]]
        return web.Response(body=content, content_type=media_type)

    # Socket Mode.

    async def _socket_mode(self, request: web.Request) -> web.StreamResponse:
        ticket = request.query.get("ticket", "")
        if ticket not in self.tickets:  # an address is valid for one connection
            return web.Response(status=408)
        self.tickets.discard(ticket)
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": len(self.sockets) + 1, "connection_info": {}})
        self.sockets.append(socket)
        self._transports.append(cast("asyncio.Transport", request.transport))
        self.connections += 1
        self._notify()
        if self.closes_new_sockets:
            await socket.close()
        waiting, self._undelivered = self._undelivered, []
        for envelope in waiting:
            await socket.send_json(envelope.body)
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self._ack(json.loads(message.data))
                elif message.type is WSMsgType.PING:
                    self.socket_pings += 1
                    if self.answers_pings:
                        await socket.pong(message.data)
                    self._notify()
                elif message.type is WSMsgType.PONG:
                    self.socket_pongs += 1
                    self._notify()
        finally:
            if socket in self.sockets:
                self.sockets.remove(socket)
            self._notify()
        return socket

    def _ack(self, answer: Json) -> None:
        envelope = self._envelopes[answer["envelope_id"]]
        self.acks += 1
        envelope.acked.set()
        self._notify()

    def _send_envelope(self, kind: str, payload: Json, retry: int = 0) -> Envelope:
        name = f"e-{next(self.numbers)}"
        body: Json = {"envelope_id": name, "type": kind, "accepts_response_payload": False, "payload": payload}
        if retry:
            body |= {"retry_attempt": retry, "retry_reason": "timeout"}
        envelope = self._envelopes[name] = Envelope(body)
        if self.sockets:
            asyncio.get_running_loop().create_task(self._write(self.sockets[-1], envelope))
        else:
            self._undelivered.append(envelope)
        return envelope

    async def _write(self, socket: web.WebSocketResponse, envelope: Envelope) -> None:
        try:
            await socket.send_json(envelope.body)
        except ConnectionError:
            self._undelivered.append(envelope)

    def emit(self, event: Json) -> Envelope:
        """Send an event over Socket Mode."""
        return self._send_envelope("events_api", self.event_callback(event))

    def event_callback(self, event: Json) -> Json:
        """Return the payload for an event, which is the same over HTTP and Socket Mode."""
        return {
            "token": "legacy", "team_id": "T1", "api_app_id": APP, "type": "event_callback", "event": event,
            "event_id": f"Ev{next(self.numbers)}", "event_time": int(time.time()), "is_ext_shared_channel": False,
            "authorizations": [{"enterprise_id": None, "team_id": "T1", "user_id": BOT, "is_bot": True}],
        }  # fmt: skip

    def redeliver(self, envelope: Envelope) -> Envelope:
        """Deliver the same envelope again."""
        return self._send_envelope(envelope.body["type"], envelope.body["payload"], retry=1)

    async def ask_to_reconnect(self, reason: str = "refresh_requested") -> None:
        await self.sockets[-1].send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "x"}})

    def drop(self) -> None:
        """Abort every connection without a close frame."""
        for transport in self._transports:
            transport.abort()
        self._transports = []

    # User actions.

    def say(self, text: str, channel: str = "DANN", user: str = "UANN", thread: str = "", **more: Any) -> Envelope:
        """Send a message as a user to a direct message or a channel, as Slack's clients do."""
        ts = self.new_timestamp()
        message: Json = {
            "type": "message", "ts": ts, "user": user, "text": text, "client_msg_id": f"c-{ts}", "team": "T1",
            "blocks": [{"type": "rich_text", "elements": []}], "edited": None, **more,
            **({"thread_ts": thread, "parent_user_id": self.messages[channel][thread]["user"]} if thread else {}),
        }  # fmt: skip
        self.messages[channel][ts] = message
        kind = "im" if channel.startswith("D") else "channel"
        return self.emit({**message, "channel": channel, "event_ts": ts, "channel_type": kind})

    def edit(self, envelope: Envelope, text: str) -> Envelope:
        event = envelope.body["payload"]["event"]
        message = self.messages[event["channel"]][event["ts"]]
        old = dict(message)
        message |= {"text": text, "edited": {"user": message["user"], "ts": self.new_timestamp()}}
        return self.emit(message_changed(event["channel"], message, old))

    def delete(self, envelope: Envelope) -> Envelope:
        event = envelope.body["payload"]["event"]
        old = self.messages[event["channel"]].pop(event["ts"])
        return self.emit({
            "type": "message", "subtype": "message_deleted", "hidden": True, "channel": event["channel"],
            "ts": self.new_timestamp(), "deleted_ts": event["ts"], "previous_message": old,
        })  # fmt: skip

    def press(self, label: str, user: str = "UANN") -> Envelope:
        """Press the newest button with this label."""
        for channel, message in reversed([(c, m) for c, ms in self.messages.items() for m in ms.values()]):
            for block in list_field(message, "blocks"):
                for element in list_field(block, "elements"):
                    if label in str(element.get("text", "")):
                        return self._send_envelope("interactive", self.press_payload(channel, message, element, user))
        raise AssertionError(f"no button {label}")

    def press_payload(self, channel: str, message: Json, element: Json, user: str = "UANN") -> Json:
        action = {key: element[key] for key in ("action_id", "text", "value", "type")}
        return {
            "type": "block_actions", "team": {"id": "T1"}, "user": {"id": user, "name": user.lower()},
            "api_app_id": APP, "container": {"type": "message", "message_ts": message["ts"], "channel_id": channel},
            "channel": {"id": channel, "name": "x"}, "message": message, "trigger_id": "1", "token": "legacy",
            "response_url": f"{self.url}/respond",
            "actions": [{**action, "action_ts": self.new_timestamp(), "block_id": "b"}],
        }  # fmt: skip

    # Results.

    def bot_messages(self, channel: str = "DANN") -> list[Json]:
        return [message for message in self.messages[channel].values() if message["user"] == BOT]

    def bot_texts(self, channel: str = "DANN") -> list[str]:
        """Return the bot's messages as users see them."""
        return [visible_text(message) for message in self.bot_messages(channel)]

    async def until(self, is_true: Callable[[], bool]) -> None:
        await until(is_true, changed=self._changed, shows=lambda: self.calls)

    def _notify(self) -> None:
        self._changed.set()


@asynccontextmanager
async def slack_server() -> AsyncGenerator[SlackServer]:
    slack = SlackServer()
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
