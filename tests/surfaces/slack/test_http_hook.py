"""Slack over HTTP with a real server. Only requests that are signed by Slack, recent and not replayed are accepted."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from msgspec import structs

from hark.protocol.chat import ButtonPressed, ChatError, IncomingMessage, OutgoingMessage
from hark.surfaces.slack.http_hook import MAX_AGE_SECONDS, SignatureVerifier
from hark.surfaces.slack.platform import SlackSettings
from hark.surfaces.slack.surface import SlackSurface
from tests.fakes.slack_payloads import Json, as_form, signature_headers
from tests.fakes.slack_server import SlackServer, slack_server
from tests.surfaces.slack.slack_fixture import DM, DeliveryRecorder, slack_settings
from tests.surfaces.web.web_fixture import run_web_server

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"


class SlackCaller:
    """A fake Slack server that sends requests to the hook."""

    def __init__(self, url: str, client: aiohttp.ClientSession) -> None:
        self.url = url
        self._client = client

    async def post(
        self, body: bytes, headers: dict[str, str], content_type: str = "application/json"
    ) -> tuple[int, str]:
        async with self._client.post(self.url, data=body, headers={**headers, "Content-Type": content_type}) as answer:
            return answer.status, await answer.text()

    async def send(self, payload: Json) -> int:
        body = json.dumps(payload).encode()
        return (await self.post(body, signature_headers(SECRET, body)))[0]


@asynccontextmanager
async def running_http_surface(
    home: Path,
) -> AsyncGenerator[tuple[SlackServer, SlackSurface, DeliveryRecorder, SlackCaller]]:
    """Run a surface behind the real web server, which requires a token for other requests."""
    async with slack_server() as slack, run_web_server(home, token="a token that Slack does not have") as world:
        settings = structs.replace(slack_settings(slack), mode="http", signing_secret=SECRET, app_token="")
        surface, recorder = SlackSurface(settings), DeliveryRecorder()
        recorder.gate.set()
        world.context.hooks.register("slack", surface.make_hook())
        running = asyncio.create_task(surface.run(recorder.deliver))
        caller = SlackCaller("/slack/events", world.client)
        try:
            while await caller.send({"type": "url_verification", "challenge": f"{time.time()}"}) == 503:
                pass
            yield slack, surface, recorder, caller
        finally:
            running.cancel()
            await asyncio.wait([running])


def message_payload(slack: SlackServer, text: str) -> Json:
    return slack.say(text).body["payload"]


async def test_slacks_url_verification_challenge_is_answered(tmp_path: Path) -> None:
    async with running_http_surface(tmp_path) as (_, _, _, caller):
        body = b'{"type": "url_verification", "challenge": "abc", "token": "x"}'
        status, answer = await caller.post(body, signature_headers(SECRET, body))
    assert status == 200
    assert "abc" in answer


async def test_events_and_button_presses_are_acknowledged_after_their_delivery(tmp_path: Path) -> None:
    async with running_http_surface(tmp_path) as (slack, surface, recorder, caller):
        recorder.gate.clear()
        sending = asyncio.create_task(caller.send(message_payload(slack, "hi")))
        await recorder.changed.wait()
        assert not sending.done()
        recorder.gate.set()
        assert await sending == 200
        await surface.send(DM, OutgoingMessage("asked"))
        pressing = slack.press_payload(
            "DANN", slack.bot_messages()[0], {"action_id": "hark_0", "value": "v", "text": {}, "type": "b"}
        )
        body = as_form(pressing)
        assert (await caller.post(body, signature_headers(SECRET, body), "application/x-www-form-urlencoded"))[0] == 200
    assert [type(one) for one in recorder.events] == [IncomingMessage, ButtonPressed]


async def test_a_failed_store_is_reported_and_can_be_retried_unchanged(tmp_path: Path) -> None:
    async with running_http_surface(tmp_path) as (slack, _, recorder, caller):
        recorder.errors.append(OSError("disk full"))
        body = json.dumps(message_payload(slack, "store me")).encode()
        headers = signature_headers(SECRET, body)
        assert (await caller.post(body, headers))[0] == 500
        assert (await caller.post(body, headers))[0] == 200
    assert len(recorder.events) == 1


async def test_a_forged_changed_old_future_or_replayed_request_is_refused(tmp_path: Path) -> None:
    async with running_http_surface(tmp_path) as (slack, _, recorder, caller):
        body = json.dumps(message_payload(slack, "evil")).encode()
        good = signature_headers(SECRET, body)
        bad = [
            {},
            signature_headers("another secret", body),
            signature_headers(SECRET, body + b" "),
            signature_headers(SECRET, body, time.time() - MAX_AGE_SECONDS - 300),
            signature_headers(SECRET, body, time.time() + MAX_AGE_SECONDS + 300),
            {**good, "X-Slack-Request-Timestamp": "now"},
            {**good, "X-Slack-Request-Timestamp": "9" * 5000},
            {**good, "X-Slack-Signature": "v0=é"},
            {**good, "X-Slack-Signature": ""},
        ]
        for headers in bad:
            assert (await caller.post(body, headers))[0] == 401
        assert recorder.events == []
        assert (await caller.post(body, good))[0] == 200
        assert (await caller.post(body, good))[0] == 401
        broken = b"\xff{not json"
        assert (await caller.post(broken, signature_headers(SECRET, broken)))[0] == 400
        large = b"x" * 1_000_001
        assert (await caller.post(large, signature_headers(SECRET, large)))[0] == 413
    assert len(recorder.events) == 1


async def test_slack_is_asked_to_retry_while_the_surface_is_not_running(tmp_path: Path) -> None:
    async with slack_server() as slack, run_web_server(tmp_path) as world:
        settings = structs.replace(slack_settings(slack), mode="http", signing_secret=SECRET)
        world.context.hooks.register("slack", SlackSurface(settings).make_hook())
        assert await SlackCaller("/slack/events", world.client).send(message_payload(slack, "early")) == 503


def test_creating_the_hook_fails_without_a_signing_secret() -> None:
    with pytest.raises(ChatError, match="signing_secret"):
        SlackSurface(SlackSettings(mode="http", signing_secret_env="")).make_hook()


def test_seen_signatures_are_forgotten_after_they_expire() -> None:
    now = [1000.0]
    verifier = SignatureVerifier(SECRET, lambda: now[0])
    counts: list[int] = []
    for second in range(0, 4000, 10):
        now[0] = 1000.0 + second
        headers = signature_headers(SECRET, b"x", now[0])
        assert verifier.accept(headers["X-Slack-Request-Timestamp"], headers["X-Slack-Signature"], b"x")
        assert not verifier.accept(headers["X-Slack-Request-Timestamp"], headers["X-Slack-Signature"], b"x")
        counts.append(len(verifier._seen))
    assert max(counts) < 70
