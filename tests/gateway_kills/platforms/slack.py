"""A Slack with many direct messages and bad days; what is not acked comes again on the next connection."""

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import web

from tests.fakes.slack_payloads import Json, listed, words
from tests.fakes.slack_server import Envelope, Failure, FakeSlack
from tests.gateway_kills.expectations import QUEUE, Deed
from tests.gateway_kills.kill_points import ACKED, EDITED, FETCHED, SENT, KillPoint
from tests.gateway_kills.platforms.platform import Habits, Shown

SAYING = ("chat.postMessage", "chat.update")


class FakeSlackWorkspace(FakeSlack):
    """The servers. What was sent is taken when its ack comes."""

    def __init__(self, chats: int, seed: int, kill_point: KillPoint) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.is_calm = False
        self.channels = {f"D{number}" for number in range(chats)}
        self.people |= {f"U{number}": f"Person {number}" for number in range(chats)}
        self.unacked: dict[str, Envelope] = {}
        self.tells_own = False
        self._random = random.Random(seed)
        self._kill_point = kill_point
        self._deeds: dict[str, Deed] = {}

    def expect(self, envelope: Envelope, deed: Deed) -> None:
        """Have a deed hear of the ack; now and then the same is delivered twice."""
        self._deeds[envelope.body["envelope_id"]] = deed
        if self._random.random() < 0.03:
            self._count("events delivered twice")
            self.again(envelope)

    def interact(self, payload: Json, deed: Deed) -> None:
        """Deliver the press of a button."""
        self.expect(self._put("interactive", payload), deed)

    async def _api(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        chance = self._random.random()
        if method in SAYING and not self.is_calm and chance < 0.012:
            kinds = [Failure(status=429, retry_after=1), Failure(is_done=True), Failure(status=503)]
            self.failures[method].append(kinds[int(chance / 0.004)])
            self._count(("429s", "answers lost", "answers of 503")[int(chance / 0.004)])
        return await super()._api(request)

    def do(self, method: str, given: Json) -> Json:
        answer = super().do(method, given)
        if method in SAYING:
            self._kill_point.at(SENT if method == SAYING[0] else EDITED)
        return answer

    async def _file(self, request: web.Request) -> web.StreamResponse:
        self._kill_point.at(FETCHED)
        return await super()._file(request)

    def _put(self, kind: str, payload: Json, retry: int = 0) -> Envelope:
        envelope = super()._put(kind, payload, retry)
        self.unacked[envelope.body["envelope_id"]] = envelope
        return envelope

    async def _link(self, request: web.Request) -> web.StreamResponse:
        self._waiting = list(self.unacked.values())
        return await super()._link(request)

    def _ack(self, answer: Json) -> None:
        super()._ack(answer)
        name = answer["envelope_id"]
        self.unacked.pop(name, None)
        if name in self._deeds:
            self._deeds.pop(name).take()
        self._kill_point.at(ACKED)

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


class SlackFixture:
    """A person in direct messages with the bot."""

    habits = Habits(delivery=QUEUE)

    def __init__(self, server: FakeSlackWorkspace, number: int) -> None:
        self.author, self.author_id = f"Person {number}", f"U{number}"
        self.session = f"slack:D{number}"
        self._server = server
        self._channel = f"D{number}"
        self._me = f"U{number}"
        self._said: dict[str, Envelope] = {}

    async def write(self, text: str, deed: Deed, token: str, *, is_aside: bool = False) -> str:
        return self._sent(self._server.say(text, self._channel, self._me), deed)

    async def picture(self, text: str, deed: Deed, album: str) -> str:
        raise NotImplementedError

    async def speak(self, recording: bytes, deed: Deed, token: str) -> str:
        self._server.files[token] = (recording, "audio/ogg")
        files = [self._server.file(token, subtype="slack_audio")]
        return self._sent(self._server.say("", self._channel, self._me, subtype="file_share", files=files), deed)

    async def rewrite(self, message: str, text: str, deed: Deed) -> None:
        self._server.expect(self._server.rewrite(self._said[message], text), deed)

    async def delete(self, message: str, deed: Deed) -> None:
        self._server.expect(self._server.delete(self._said[message]), deed)

    async def press(self, label: str, deed: Deed) -> Shown | None:
        for message in reversed(self._server.ours(self._channel)[-20:]):
            for button in _buttons(message):
                if label in str(button["text"]):
                    self._server.interact(self._server.pressing(self._channel, message, button, self._me), deed)
                    return _shown(message)
        return None

    def shown(self) -> list[Shown]:
        return [_shown(message) for message in self._server.ours(self._channel)]

    def _sent(self, envelope: Envelope, deed: Deed) -> str:
        self._server.expect(envelope, deed)
        name = str(envelope.body["payload"]["event"]["ts"])
        self._said[name] = envelope
        return name


def _buttons(message: Json) -> list[Json]:
    return [element for block in listed(message, "blocks") for element in listed(block, "elements")]


def _shown(message: Json) -> Shown:
    return Shown(message["ts"], words(message), tuple(str(button["text"]) for button in _buttons(message)))


@asynccontextmanager
async def fake_slack(chats: int, seed: int, kill_point: KillPoint) -> AsyncGenerator[FakeSlackWorkspace]:
    """Serve until the end."""
    server = FakeSlackWorkspace(chats, seed, kill_point)
    runner = web.AppRunner(server.routes(), shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        server.drop()
        await runner.cleanup()
