"""A fake Slack with many direct chats and injected failures. Unacknowledged events are resent on reconnect."""

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import web

from tests.fakes.slack_payloads import Json, list_field, visible_text
from tests.fakes.slack_server import Envelope, SlackFailure, SlackServer
from tests.gateway_kills.expectations import QUEUE, UserAction
from tests.gateway_kills.kill_points import ACKED, EDITED, FETCHED, SENT, KillPoint
from tests.gateway_kills.platforms.platform import PlatformFeatures, VisibleMessage

WRITE_METHODS = ("chat.postMessage", "chat.update")


class FakeSlack(SlackServer):
    """Fake Slack servers. An event counts as accepted when the gateway has acknowledged it."""

    def __init__(self, chats: int, seed: int, kill_point: KillPoint) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.is_calm = False
        self.channels = {f"D{number}" for number in range(chats)}
        self.users |= {f"U{number}": f"Person {number}" for number in range(chats)}
        self.unacked: dict[str, Envelope] = {}
        self.sends_own_events = False
        self._random = random.Random(seed)
        self._kill_point = kill_point
        self._actions: dict[str, UserAction] = {}

    def expect(self, envelope: Envelope, action: UserAction) -> None:
        """Record the acknowledgement of an envelope in `action`. Sometimes deliver the event twice."""
        self._actions[envelope.body["envelope_id"]] = action
        if self._random.random() < 0.03:
            self._count("events delivered twice")
            self.redeliver(envelope)

    def interact(self, payload: Json, action: UserAction) -> None:
        """Deliver a button press."""
        self.expect(self._send_envelope("interactive", payload), action)

    async def _api(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        chance = self._random.random()
        if method in WRITE_METHODS and not self.is_calm and chance < 0.012:
            kinds = [SlackFailure(status=429, retry_after=1), SlackFailure(is_done=True), SlackFailure(status=503)]
            self.failures[method].append(kinds[int(chance / 0.004)])
            self._count(("429s", "answers lost", "answers of 503")[int(chance / 0.004)])
        return await super()._api(request)

    def call(self, method: str, arguments: Json) -> Json:
        answer = super().call(method, arguments)
        if method in WRITE_METHODS:
            self._kill_point.reach(SENT if method == WRITE_METHODS[0] else EDITED)
        return answer

    async def _file(self, request: web.Request) -> web.StreamResponse:
        self._kill_point.reach(FETCHED)
        return await super()._file(request)

    def _send_envelope(self, kind: str, payload: Json, retry: int = 0) -> Envelope:
        envelope = super()._send_envelope(kind, payload, retry)
        self.unacked[envelope.body["envelope_id"]] = envelope
        return envelope

    async def _socket_mode(self, request: web.Request) -> web.StreamResponse:
        self._undelivered = list(self.unacked.values())
        return await super()._socket_mode(request)

    def _ack(self, answer: Json) -> None:
        super()._ack(answer)
        name = answer["envelope_id"]
        self.unacked.pop(name, None)
        if name in self._actions:
            self._actions.pop(name).mark_accepted()
        self._kill_point.reach(ACKED)

    def _count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1


class SlackFixture:
    """A simulated user in a direct chat with the bot."""

    features = PlatformFeatures(delivery=QUEUE)

    def __init__(self, server: FakeSlack, number: int) -> None:
        self.author, self.author_id = f"Person {number}", f"U{number}"
        self.session = f"slack:D{number}"
        self._server = server
        self._channel = f"D{number}"
        self._me = f"U{number}"
        self._sent_envelopes: dict[str, Envelope] = {}

    async def write(self, text: str, action: UserAction, token: str, *, is_aside: bool = False) -> str:
        return self._record_sent(self._server.say(text, self._channel, self._me), action)

    async def send_picture(self, text: str, action: UserAction, album: str) -> str:
        raise NotImplementedError

    async def send_recording(self, recording: bytes, action: UserAction, token: str) -> str:
        self._server.files[token] = (recording, "audio/ogg")
        files = [self._server.file_object(token, subtype="slack_audio")]
        return self._record_sent(
            self._server.say("", self._channel, self._me, subtype="file_share", files=files), action
        )

    async def edit(self, message: str, text: str, action: UserAction) -> None:
        self._server.expect(self._server.edit(self._sent_envelopes[message], text), action)

    async def delete(self, message: str, action: UserAction) -> None:
        self._server.expect(self._server.delete(self._sent_envelopes[message]), action)

    async def press(self, label: str, action: UserAction) -> VisibleMessage | None:
        for message in reversed(self._server.bot_messages(self._channel)[-20:]):
            for button in _buttons(message):
                if label in str(button["text"]):
                    self._server.interact(self._server.press_payload(self._channel, message, button, self._me), action)
                    return _visible_message(message)
        return None

    def visible_messages(self) -> list[VisibleMessage]:
        return [_visible_message(message) for message in self._server.bot_messages(self._channel)]

    def _record_sent(self, envelope: Envelope, action: UserAction) -> str:
        self._server.expect(envelope, action)
        name = str(envelope.body["payload"]["event"]["ts"])
        self._sent_envelopes[name] = envelope
        return name


def _buttons(message: Json) -> list[Json]:
    return [element for block in list_field(message, "blocks") for element in list_field(block, "elements")]


def _visible_message(message: Json) -> VisibleMessage:
    return VisibleMessage(
        message["ts"], visible_text(message), tuple(str(button["text"]) for button in _buttons(message))
    )


@asynccontextmanager
async def fake_slack(chats: int, seed: int, kill_point: KillPoint) -> AsyncGenerator[FakeSlack]:
    """Serve the fake Slack until the context ends."""
    server = FakeSlack(chats, seed, kill_point)
    runner = web.AppRunner(server.routes(), shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        server.drop()
        await runner.cleanup()
