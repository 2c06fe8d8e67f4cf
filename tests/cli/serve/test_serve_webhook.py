"""`hark serve` with webhooks: a program talks to the agent by signed requests, and hears what it says."""

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

from tests.cli.command_line import Hark, Running, opened
from tests.fakes.models.behaviours import call, delta, echo, events, hanging, text
from tests.fakes.webhook_program import SECRET, Program, Trouble, program_server, signed
from tests.waiting import at_most

SETTINGS = """
[surfaces.webhook.hooks.ci]
secret_env = "CI_SECRET"
url = "{url}"
"""


class Calling:
    """The program, as it calls the gateway."""

    def __init__(self, running: Running, client: aiohttp.ClientSession, base: str, program: Program) -> None:
        self.running = running
        self.base = base
        self._client = client
        self._program = program

    async def say(self, words: str = "", **more: Any) -> int:
        """Post a message, as a program does that must not lose it: again while it is asked to."""
        name = f"m{next(self._program.numbers)}"
        body = json.dumps({"id": name, "text": words, **more}).encode()
        while True:
            async with self._client.post("/hooks/ci", data=body, headers=signed(body)) as answer:
                if answer.status != 503:
                    return answer.status
            await asyncio.sleep(0.02)


@asynccontextmanager
async def serving(hark: Hark, program: Program, settings: str = "") -> AsyncGenerator[Calling]:
    hark.configure(SETTINGS.format(url=program.url) + settings)
    running = await hark.start("serve", "--port", "0", "--token", "what only people know", CI_SECRET=SECRET)
    try:
        base = (await running.until("serving on")).rpartition(" ")[2].strip()
        async with aiohttp.ClientSession(base, timeout=aiohttp.ClientTimeout(30)) as client:
            yield Calling(running, client, base, program)
    finally:
        if running.process.returncode is None:
            running.process.kill()
        await running.end()


async def test_a_program_talks_stops_by_a_word_and_by_a_type_and_goes_on(tmp_path: Path) -> None:
    script = [echo(), hanging(2), hanging(2), echo()]
    async with opened(tmp_path, script) as hark, program_server() as program, serving(hark, program) as calling:
        assert await calling.say("hello there") == 202
        await program.until(lambda: program.texts == ["hello there"])
        for number, stop in enumerate(({"text": "/stop"}, {"type": "stop"}), 2):
            assert await calling.say("something long") == 202
            await hark.server.request(number)
            assert await calling.say(**stop) == 202
            await program.until(lambda number=number: "".join(program.texts).count("⏹ stopped") == number - 1)
            await asyncio.wait_for(hark.server.requests[number - 1].left.wait(), at_most(5))
        assert await calling.say("and now?") == 202
        await program.until(lambda: program.texts[-1] == "and now?")
        assert all(event["type"] == "message" for event in program.events)  # final replies only
        assert SECRET not in "".join(file.read_text() for file in (hark.home / "logs").glob("*"))


async def test_a_question_comes_with_choices_and_an_answer_goes_back(tmp_path: Path) -> None:
    asks = call(0, "c1", "ask", '{"question": "which?", "choices": ["red", "blue"]}')
    script = [events([delta(tool_calls=[asks]), delta("tool_calls")]), text(["blue it is"])]
    async with opened(tmp_path, script) as hark, program_server() as program, serving(hark, program) as calling:
        await calling.say("choose")
        await program.until(lambda: any(event["choices"] for event in program.events))
        [question] = [event for event in program.events if event["choices"]]
        assert [choice["text"] for choice in question["choices"]] == ["red", "blue"]
        assert await calling.say(answer="blue") == 202
        await program.until(lambda: "blue it is" in program.texts)
        assert "blue" in json.dumps(hark.server.requests[1].body)


async def test_a_reply_that_streams_is_edited_and_has_a_stop_among_its_choices(tmp_path: Path) -> None:
    settings = "[surfaces.webhook]\nstreams = true\n"
    async with opened(tmp_path, [hanging(2)]) as hark, program_server() as program:
        async with serving(hark, program, settings) as calling:
            await calling.say("something long")
            await program.until(lambda: any("Stop" in str(event["choices"]) for event in program.events))
            assert await calling.say(answer="⏹ Stop") == 202
            await program.until(lambda: "⏹ stopped" in program.texts[-1])
        assert len(program.texts) == 1
        assert {event["type"] for event in program.events} == {"message", "edit"}


async def test_a_redelivery_a_kill_and_a_receiver_with_troubles_lose_and_double_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, [echo(), echo(), echo()]) as hark, program_server() as program:
        async with serving(hark, program) as calling:
            program.troubles += [Trouble(500), Trouble(429, "0"), Trouble(is_done=True)]
            assert [await calling.say("first", id="a") for _ in range(3)] == [202] * 3
            await program.until(lambda: program.texts == ["first"] and len(program.confirmed) == 1)
            program.gate.clear()
            assert await calling.say("second", id="b") == 202
            await program.until(lambda: any(b"second" in body for body in program.bodies))  # it is not confirmed
            calling.running.process.kill()
            await calling.running.process.wait()
        program.gate.set()
        async with serving(hark, program) as calling:
            assert await calling.say("second", id="b") == 202
            assert await calling.say("third", id="c") == 202
            await program.until(lambda: "third" in program.texts)
        assert program.texts == ["first", "second", "third"]
    assert len(hark.server.requests) == 3


async def test_a_hook_without_a_secret_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        hark.configure("[surfaces.webhook.hooks.ci]\nurl = 'http://127.0.0.1:1/'\n")
        running = await hark.start("serve", "--port", "0", "--verbose")
        await running.said("has no secret")
        running.process.kill()
        await running.end()


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="curl and openssl are not here")
async def test_the_example_of_the_docs_works_as_it_is_written(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "webhook.md").read_text()
    [example] = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    async with opened(tmp_path, [echo()]) as hark, program_server() as program, serving(hark, program) as calling:
        shell = await asyncio.create_subprocess_exec(
            *("sh", "-c", example.replace("http://127.0.0.1:8377", calling.base)),
            env={**os.environ, "CI_HOOK_SECRET": SECRET},
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await shell.communicate()
        assert out.decode() in page
        await program.until(lambda: program.texts == ["Build 512 failed in test_login. Why?"])
    assert '"key": "webhook:ci.t1:0"' in page
    assert program.events[0]["key"] == "webhook:ci.t1:0"
