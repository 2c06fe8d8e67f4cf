"""Slack by HTTP, on a real server: what Slack has signed, of now, once; anything else is refused."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from msgspec import structs

from hark.protocol.chat import ChatError, Outgoing, Pressed, Written
from hark.surfaces.slack.http_hook import MOST_SECONDS, SlackSignatures
from hark.surfaces.slack.platform import SlackSettings
from hark.surfaces.slack.surface import SlackSurface
from tests.fakes.slack_payloads import Json, as_form, signed
from tests.fakes.slack_server import FakeSlack, slack_server
from tests.surfaces.slack.slack_fixture import DM, Ear, settings_for
from tests.surfaces.web.web_fixture import served

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"


class Caller:
    """Slack, as it calls us."""

    def __init__(self, url: str, client: aiohttp.ClientSession) -> None:
        self.url = url
        self._client = client

    async def post(self, body: bytes, headers: dict[str, str], kind: str = "application/json") -> tuple[int, str]:
        async with self._client.post(self.url, data=body, headers={**headers, "Content-Type": kind}) as answer:
            return answer.status, await answer.text()

    async def send(self, payload: Json) -> int:
        body = json.dumps(payload).encode()
        return (await self.post(body, signed(SECRET, body)))[0]


@asynccontextmanager
async def calling(home: Path) -> AsyncGenerator[tuple[FakeSlack, SlackSurface, Ear, Caller]]:
    """A surface behind the real web server, which asks everybody else for a token."""
    async with slack_server() as slack, served(home, token="a token that Slack does not have") as world:
        settings = structs.replace(settings_for(slack), mode="http", signing_secret=SECRET, app_token="")
        surface, ear = SlackSurface(settings), Ear()
        ear.gate.set()
        world.place.hooks.bring("slack", surface.hook())
        running = asyncio.create_task(surface.run(ear.deliver))
        caller = Caller("/slack/events", world.client)
        try:
            while await caller.send({"type": "url_verification", "challenge": f"{time.time()}"}) == 503:
                pass
            yield slack, surface, ear, caller
        finally:
            running.cancel()
            await asyncio.wait([running])


def message(slack: FakeSlack, text: str) -> Json:
    return slack.say(text).body["payload"]


async def test_slack_finds_its_challenge_answered(tmp_path: Path) -> None:
    async with calling(tmp_path) as (_, _, _, caller):
        body = b'{"type": "url_verification", "challenge": "abc", "token": "x"}'
        status, answer = await caller.post(body, signed(SECRET, body))
    assert status == 200
    assert "abc" in answer


async def test_an_event_is_answered_when_it_was_delivered_and_a_press_too(tmp_path: Path) -> None:
    async with calling(tmp_path) as (slack, surface, ear, caller):
        ear.gate.clear()
        sending = asyncio.create_task(caller.send(message(slack, "hi")))
        await ear.changed.wait()
        assert not sending.done()
        ear.gate.set()
        assert await sending == 200
        await surface.send(DM, Outgoing("asked"))
        pressing = slack.pressing(
            "DANN", slack.ours()[0], {"action_id": "hark_0", "value": "v", "text": {}, "type": "b"}
        )
        body = as_form(pressing)
        assert (await caller.post(body, signed(SECRET, body), "application/x-www-form-urlencoded"))[0] == 200
    assert [type(one) for one in ear.heard] == [Written, Pressed]


async def test_what_could_not_be_kept_is_no_success_and_may_come_again_as_it_is(tmp_path: Path) -> None:
    async with calling(tmp_path) as (slack, _, ear, caller):
        ear.failing.append(OSError("disk full"))
        body = json.dumps(message(slack, "keep me")).encode()
        headers = signed(SECRET, body)
        assert (await caller.post(body, headers))[0] == 500
        assert (await caller.post(body, headers))[0] == 200
    assert len(ear.heard) == 1


async def test_a_forged_changed_old_future_or_repeated_request_is_refused(tmp_path: Path) -> None:
    async with calling(tmp_path) as (slack, _, ear, caller):
        body = json.dumps(message(slack, "evil")).encode()
        good = signed(SECRET, body)
        bad = [
            {},
            signed("another secret", body),
            signed(SECRET, body + b" "),
            signed(SECRET, body, time.time() - MOST_SECONDS - 300),
            signed(SECRET, body, time.time() + MOST_SECONDS + 300),
            {**good, "X-Slack-Request-Timestamp": "now"},
            {**good, "X-Slack-Request-Timestamp": "9" * 5000},
            {**good, "X-Slack-Signature": "v0=é"},
            {**good, "X-Slack-Signature": ""},
        ]
        for headers in bad:
            assert (await caller.post(body, headers))[0] == 401
        assert ear.heard == []
        assert (await caller.post(body, good))[0] == 200
        assert (await caller.post(body, good))[0] == 401
        broken = b"\xff{not json"
        assert (await caller.post(broken, signed(SECRET, broken)))[0] == 400
        large = b"x" * 1_000_001
        assert (await caller.post(large, signed(SECRET, large)))[0] == 413
    assert len(ear.heard) == 1


async def test_while_nothing_runs_slack_is_asked_to_come_again(tmp_path: Path) -> None:
    async with slack_server() as slack, served(tmp_path) as world:
        settings = structs.replace(settings_for(slack), mode="http", signing_secret=SECRET)
        world.place.hooks.bring("slack", SlackSurface(settings).hook())
        assert await Caller("/slack/events", world.client).send(message(slack, "early")) == 503


def test_without_a_secret_there_is_no_hook() -> None:
    with pytest.raises(ChatError, match="signing_secret"):
        SlackSurface(SlackSettings(mode="http", signing_secret_env="")).hook()


def test_signatures_are_forgotten_when_they_are_too_old_to_count() -> None:
    now = [1000.0]
    signatures = SlackSignatures(SECRET, lambda: now[0])
    seen: list[int] = []
    for second in range(0, 4000, 10):
        now[0] = 1000.0 + second
        headers = signed(SECRET, b"x", now[0])
        assert signatures.admit(headers["X-Slack-Request-Timestamp"], headers["X-Slack-Signature"], b"x")
        assert not signatures.admit(headers["X-Slack-Request-Timestamp"], headers["X-Slack-Signature"], b"x")
        seen.append(len(signatures._seen))
    assert max(seen) < 70
