"""`hark serve` with webhooks: a program sends signed requests to the agent and receives its replies."""

import asyncio
import json
import os
import re
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.cli.command_line import Hark, RunningCommand, open_hark
from tests.fakes.models.behaviours import call, delta, echo, events, hanging, text
from tests.fakes.webhook_program import SECRET, WebhookFailure, WebhookProgram, program_server, signature_headers
from tests.waiting import at_most

SETTINGS = """
[surfaces.webhook.hooks.ci]
secret_env = "CI_SECRET"
url = "{url}"
"""


class WebhookCaller:
    """A simulated program that posts messages to the gateway's webhook."""

    def __init__(
        self, running: RunningCommand, client: aiohttp.ClientSession, base: str, program: WebhookProgram
    ) -> None:
        self.running = running
        self.base = base
        self._client = client
        self._program = program

    async def say(self, text: str = "", **fields: Any) -> int:
        """Post a message and retry while the gateway returns 503."""
        name = f"m{next(self._program.numbers)}"
        body = json.dumps({"id": name, "text": text, **fields}).encode()
        while True:
            async with self._client.post("/hooks/ci", data=body, headers=signature_headers(body)) as answer:
                if answer.status != 503:
                    return answer.status
            await asyncio.sleep(0.02)


@asynccontextmanager
async def serve_webhook(hark: Hark, program: WebhookProgram, settings: str = "") -> AsyncGenerator[WebhookCaller]:
    hark.configure(SETTINGS.format(url=program.url) + settings)
    running = await hark.start("serve", "--port", "0", "--token", "what only people know", CI_SECRET=SECRET)
    try:
        base = (await running.wait_for_line("serving on")).rpartition(" ")[2].strip()
        async with aiohttp.ClientSession(base, timeout=aiohttp.ClientTimeout(30)) as client:
            yield WebhookCaller(running, client, base, program)
    finally:
        if running.process.returncode is None:
            running.process.kill()
        await running.wait_for_end()


async def test_a_turn_is_stopped_by_a_command_or_a_stop_request_and_the_chat_continues(tmp_path: Path) -> None:
    script = [echo(), hanging(2), hanging(2), echo()]
    async with open_hark(tmp_path, script) as hark, program_server() as program, serve_webhook(hark, program) as caller:
        assert await caller.say("hello there") == 202
        await program.until(lambda: program.texts == ["hello there"])
        for number, stop in enumerate(({"text": "/stop"}, {"type": "stop"}), 2):
            assert await caller.say("something long") == 202
            await hark.server.request(number)
            assert await caller.say(**stop) == 202
            await program.until(lambda number=number: "".join(program.texts).count("⏹ stopped") == number - 1)
            await asyncio.wait_for(hark.server.requests[number - 1].disconnected.wait(), at_most(5))
        assert await caller.say("and now?") == 202
        await program.until(lambda: program.texts[-1] == "and now?")
        assert all(event["type"] == "message" for event in program.events)  # final replies only
        assert SECRET not in "".join(file.read_text() for file in (hark.home / "logs").glob("*"))


async def test_a_question_is_sent_with_choices_and_accepts_an_answer(tmp_path: Path) -> None:
    ask_call = call(0, "c1", "ask", '{"question": "which?", "choices": ["red", "blue"]}')
    script = [events([delta(tool_calls=[ask_call]), delta("tool_calls")]), text(["blue it is"])]
    async with open_hark(tmp_path, script) as hark, program_server() as program, serve_webhook(hark, program) as caller:
        await caller.say("choose")
        await program.until(lambda: any(event["choices"] for event in program.events))
        [question] = [event for event in program.events if event["choices"]]
        assert [choice["text"] for choice in question["choices"]] == ["red", "blue"]
        assert await caller.say(answer="blue") == 202
        await program.until(lambda: "blue it is" in program.texts)
        assert "blue" in json.dumps(hark.server.requests[1].body)


async def test_a_streaming_reply_is_edited_and_has_a_stop_button(tmp_path: Path) -> None:
    settings = "[surfaces.webhook]\nstreams = true\n"
    async with open_hark(tmp_path, [hanging(2)]) as hark, program_server() as program:
        async with serve_webhook(hark, program, settings) as caller:
            await caller.say("something long")
            await program.until(lambda: any("Stop" in str(event["choices"]) for event in program.events))
            assert await caller.say(answer="⏹ Stop") == 202
            await program.until(lambda: "⏹ stopped" in program.texts[-1])
        assert len(program.texts) == 1
        assert {event["type"] for event in program.events} == {"message", "edit"}


async def test_redeliveries_kills_and_receiver_errors_neither_lose_nor_duplicate_messages(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [echo(), echo(), echo()]) as hark, program_server() as program:
        async with serve_webhook(hark, program) as caller:
            program.failures += [WebhookFailure(500), WebhookFailure(429, "0"), WebhookFailure(is_done=True)]
            assert [await caller.say("first", id="a") for _ in range(3)] == [202] * 3
            await program.until(lambda: program.texts == ["first"] and len(program.confirmed) == 1)
            program.may_answer.clear()
            assert await caller.say("second", id="b") == 202
            await program.until(lambda: any(b"second" in body for body in program.bodies))  # sent, but not confirmed
            caller.running.process.kill()
            await caller.running.process.wait()
        program.may_answer.set()
        async with serve_webhook(hark, program) as caller:
            assert await caller.say("second", id="b") == 202
            assert await caller.say("third", id="c") == 202
            await program.until(lambda: "third" in program.texts)
        assert program.texts == ["first", "second", "third"]
    assert len(hark.server.requests) == 3


async def test_a_webhook_without_a_secret_is_reported(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        hark.configure("[surfaces.webhook.hooks.ci]\nurl = 'http://127.0.0.1:1/'\n")
        running = await hark.start("serve", "--port", "0", "--verbose")
        await running.wait_for_stderr("has no secret")
        running.process.kill()
        await running.wait_for_end()


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="curl and openssl are not here")
async def test_the_example_in_the_webhook_documentation_works(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "webhook.md").read_text()
    [example] = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    async with (
        open_hark(tmp_path, [echo()]) as hark,
        program_server() as program,
        serve_webhook(hark, program) as caller,
    ):
        shell = await asyncio.create_subprocess_exec(
            *("sh", "-c", example.replace("http://127.0.0.1:8377", caller.base)),
            env={**os.environ, "CI_HOOK_SECRET": SECRET},
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await shell.communicate()
        assert out.decode() in page
        await program.until(lambda: program.texts == ["Build 512 failed in test_login. Why?"])
    assert '"key": "webhook:ci.t1:0"' in page
    assert program.events[0]["key"] == "webhook:ci.t1:0"
