"""`hark serve` with Slack over HTTP: a real process that receives signed requests, as Slack sends them."""

import asyncio
import json
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from tests.cli.command_line import Hark, RunningCommand, gated, open_hark
from tests.fakes.models.behaviours import echo, hanging
from tests.fakes.slack_payloads import BOT_TOKEN, Json, as_form, signature_headers
from tests.fakes.slack_server import SlackServer, slack_server
from tests.waiting import at_most, until

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
SETTINGS = """
[surfaces.slack]
mode = "http"
token = "{token}"
signing_secret_env = "SLACK_TEST_SECRET"
api_base = "{base}/api/"
allow = ["UANN"]
"""


class SlackCaller:
    """Simulates Slack's servers: sends signed requests to the gateway."""

    def __init__(self, running: RunningCommand, client: aiohttp.ClientSession) -> None:
        self.running = running
        self.client = client

    async def post(self, body: bytes, headers: dict[str, str], content_type: str = "application/json") -> int:
        sent = {**headers, "Content-Type": content_type}
        async with self.client.post("/slack/events", data=body, headers=sent) as answer:
            return answer.status

    async def send(self, payload: Json) -> int:
        """Send a payload as Slack does: retry with a new signature while the gateway returns 503."""
        body = json.dumps(payload).encode()

        async def status() -> int:
            answer = await self.post(body, signature_headers(SECRET, body))
            return 0 if answer == 503 else answer

        return await until(status)

    async def press(self, slack: SlackServer, label: str) -> int:
        body = as_form(slack.press(label).body["payload"])
        return await self.post(body, signature_headers(SECRET, body), "application/x-www-form-urlencoded")


@asynccontextmanager
async def serve_slack(hark: Hark, slack: SlackServer, settings: str = "") -> AsyncGenerator[SlackCaller]:
    hark.configure(SETTINGS.format(token=BOT_TOKEN, base=slack.url) + settings)
    arguments = ("serve", "--port", "0", "--token", "what only people know")
    running = await hark.start(*arguments, SLACK_TEST_SECRET=SECRET)
    try:
        base = (await running.wait_for_line("serving on")).rpartition(" ")[2].strip()
        async with aiohttp.ClientSession(base, timeout=aiohttp.ClientTimeout(30)) as client:
            yield SlackCaller(running, client)
    finally:
        if running.process.returncode is None:
            running.process.kill()
        await running.wait_for_end()


def message_payload(slack: SlackServer, text: str) -> Json:
    return slack.say(text).body["payload"]


async def test_slack_calls_the_gateway_with_signed_requests_and_a_button_stops_the_turn(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [echo(), hanging(2)]) as hark, slack_server() as slack:
        async with serve_slack(hark, slack) as caller:
            assert await caller.send(message_payload(slack, "hello there")) == 200
            await slack.until(lambda: "hello there" in slack.bot_texts())
            assert await caller.send(message_payload(slack, "something long")) == 200
            await hark.server.request(2)
            await slack.until(lambda: any("Stop" in str(message["blocks"]) for message in slack.bot_messages()))
            assert await caller.press(slack, "Stop") == 200
            await slack.until(lambda: any("⏹ stopped" in text for text in slack.bot_texts()))
            await asyncio.wait_for(hark.server.requests[1].disconnected.wait(), at_most(5))
        logs = "".join(file.read_text() for file in (hark.home / "logs").glob("*"))
    assert SECRET not in logs
    assert BOT_TOKEN not in logs


async def test_requests_with_a_missing_wrong_or_reused_signature_are_rejected(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [echo()]) as hark, slack_server() as slack, serve_slack(hark, slack) as caller:
        assert await caller.send({"type": "url_verification", "challenge": "abc"}) == 200
        body = json.dumps(message_payload(slack, "once")).encode()
        good = signature_headers(SECRET, body)
        wrong = [
            {},
            signature_headers("wrong", body),
            signature_headers(SECRET, body + b" "),
            signature_headers(SECRET, body, time.time() - 1000),
        ]
        assert [await caller.post(body, headers) for headers in wrong] == [401] * 4
        assert await caller.post(body, good) == 200
        assert await caller.post(body, good) == 401
        # a redelivery, which is accepted once
        assert await caller.post(body, signature_headers(SECRET, body, time.time() - 100)) == 200
        await slack.until(lambda: slack.bot_texts() == ["once"])
        assert len(hark.server.requests) == 1
        async with caller.client.get("/api/sessions") as answer:
            assert answer.status == 401  # only the hook is open without a token


async def test_slack_requests_are_refused_during_a_drain_and_accepted_after_the_restart(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with open_hark(tmp_path, [gated(gate, "finished"), echo()]) as hark, slack_server() as slack:
        async with serve_slack(hark, slack, "[serve]\ndrain_seconds = 60\n") as caller:
            assert await caller.send(message_payload(slack, "long")) == 200
            await hark.server.request(1)
            late = message_payload(slack, "came late")
            body = json.dumps(late).encode()
            caller.running.signal(signal.SIGTERM)
            async with caller.client.get("/healthz") as answer:
                status = answer.status
            while status == 200:
                async with caller.client.get("/healthz") as answer:
                    status = answer.status
            assert await caller.post(body, signature_headers(SECRET, body)) == 503
            gate.set()
            assert (await caller.running.wait_for_end()).code == 143
        async with serve_slack(hark, slack) as caller:
            assert await caller.send(late) == 200
            await slack.until(lambda: "came late" in slack.bot_texts())
        assert any("well, finished" in text for text in slack.bot_texts())
