"""`hark serve` with Slack by HTTP: a real process, called by Slack's servers with what they have signed."""

import asyncio
import json
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from tests.cli.command_line import Hark, Running, gated, opened
from tests.fakes.models.behaviours import echo, hanging
from tests.fakes.slack_payloads import BOT_TOKEN, Json, as_form, signed
from tests.fakes.slack_server import FakeSlack, slack_server
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


class Calling:
    """Slack, as it calls the gateway."""

    def __init__(self, running: Running, client: aiohttp.ClientSession) -> None:
        self.running = running
        self.client = client

    async def post(self, body: bytes, headers: dict[str, str], kind: str = "application/json") -> int:
        sent = {**headers, "Content-Type": kind}
        async with self.client.post("/slack/events", data=body, headers=sent) as answer:
            return answer.status

    async def send(self, payload: Json) -> int:
        """Send it as Slack does: again, freshly signed, while we are asked to wait."""
        body = json.dumps(payload).encode()

        async def status() -> int:
            answer = await self.post(body, signed(SECRET, body))
            return 0 if answer == 503 else answer

        return await until(status)

    async def press(self, slack: FakeSlack, label: str) -> int:
        body = as_form(slack.press(label).body["payload"])
        return await self.post(body, signed(SECRET, body), "application/x-www-form-urlencoded")


@asynccontextmanager
async def serving(hark: Hark, slack: FakeSlack, settings: str = "") -> AsyncGenerator[Calling]:
    hark.configure(SETTINGS.format(token=BOT_TOKEN, base=slack.url) + settings)
    words = ("serve", "--port", "0", "--token", "what only people know")
    running = await hark.start(*words, SLACK_TEST_SECRET=SECRET)
    try:
        base = (await running.until("serving on")).rpartition(" ")[2].strip()
        async with aiohttp.ClientSession(base, timeout=aiohttp.ClientTimeout(30)) as client:
            yield Calling(running, client)
    finally:
        if running.process.returncode is None:
            running.process.kill()
        await running.end()


def said(slack: FakeSlack, text: str) -> Json:
    return slack.say(text).body["payload"]


async def test_slack_talks_to_the_gateway_by_signed_requests_and_one_tap_stops(tmp_path: Path) -> None:
    async with opened(tmp_path, [echo(), hanging(2)]) as hark, slack_server() as slack:
        async with serving(hark, slack) as calling:
            assert await calling.send(said(slack, "hello there")) == 200
            await slack.until(lambda: "hello there" in slack.shown())
            assert await calling.send(said(slack, "something long")) == 200
            await hark.server.request(2)
            await slack.until(lambda: any("Stop" in str(message["blocks"]) for message in slack.ours()))
            assert await calling.press(slack, "Stop") == 200
            await slack.until(lambda: any("⏹ stopped" in text for text in slack.shown()))
            await asyncio.wait_for(hark.server.requests[1].left.wait(), at_most(5))
        logs = "".join(file.read_text() for file in (hark.home / "logs").glob("*"))
    assert SECRET not in logs
    assert BOT_TOKEN not in logs


async def test_what_slack_has_not_signed_now_and_once_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path, [echo()]) as hark, slack_server() as slack, serving(hark, slack) as calling:
        assert await calling.send({"type": "url_verification", "challenge": "abc"}) == 200
        body = json.dumps(said(slack, "once")).encode()
        good = signed(SECRET, body)
        wrong = [{}, signed("wrong", body), signed(SECRET, body + b" "), signed(SECRET, body, time.time() - 1000)]
        assert [await calling.post(body, headers) for headers in wrong] == [401] * 4
        assert await calling.post(body, good) == 200
        assert await calling.post(body, good) == 401
        assert await calling.post(body, signed(SECRET, body, time.time() - 100)) == 200  # delivered again: taken once
        await slack.until(lambda: slack.shown() == ["once"])
        assert len(hark.server.requests) == 1
        async with calling.client.get("/api/sessions") as answer:
            assert answer.status == 401  # the hook is open, and nothing else


async def test_while_it_drains_slack_is_asked_to_come_again_and_after_the_restart_it_is_heard(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with opened(tmp_path, [gated(gate, "finished"), echo()]) as hark, slack_server() as slack:
        async with serving(hark, slack, "[serve]\ndrain_seconds = 60\n") as calling:
            assert await calling.send(said(slack, "long")) == 200
            await hark.server.request(1)
            late = said(slack, "came late")
            body = json.dumps(late).encode()
            calling.running.signal(signal.SIGTERM)
            async with calling.client.get("/healthz") as answer:
                status = answer.status
            while status == 200:
                async with calling.client.get("/healthz") as answer:
                    status = answer.status
            assert await calling.post(body, signed(SECRET, body)) == 503
            gate.set()
            assert (await calling.running.end()).code == 143
        async with serving(hark, slack) as calling:
            assert await calling.send(late) == 200
            await slack.until(lambda: "came late" in slack.shown())
        assert any("well, finished" in text for text in slack.shown())
