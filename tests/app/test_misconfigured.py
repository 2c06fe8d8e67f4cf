"""A model that is set up wrongly: each message gets its error at once, and nothing is started, spent or piled up."""

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.app.command_line import Hark, opened
from tests.fakes.behaviours import failing, text
from tests.mcp.world import small

WARM = 30  # until what is loaded once is loaded
MESSAGES = 100
CPU_SECONDS = 0.05  # of each message: ten times what it may be, for a machine that is busy or slow


class Gateway:
    """`hark serve`, and one chat in it."""

    def __init__(self, client: aiohttp.ClientSession, pid: int) -> None:
        self.client = client
        self._pid = pid

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def say(self, words: str) -> None:
        async with self.client.post("/api/sessions/demo/messages", json={"text": words}) as response:
            assert response.status == 202, await response.text()

    @asynccontextmanager
    async def ends(self) -> AsyncGenerator[AsyncIterator[dict[str, Any]]]:
        """The ends of all turns that begin from now on."""

        async def outcomes() -> AsyncIterator[dict[str, Any]]:
            async for line in response.content:
                if line.startswith(b"data: ") and (event := json.loads(line[6:]))["type"] == "turn.ended":
                    yield event["outcome"]

        async with self.client.get("/api/sessions/demo/events") as response:
            yield outcomes()


@asynccontextmanager
async def gateway(hark: Hark, settings: str) -> AsyncGenerator[Gateway]:
    (hark.home / "config.toml").write_text(settings)
    running = await hark.start("serve", "--port", "0")
    try:
        base = (await running.until("serving on")).rpartition(" ")[2].strip()
        async with aiohttp.ClientSession(base, timeout=aiohttp.ClientTimeout(60)) as client:
            yield Gateway(client, running.process.pid)
    finally:
        if running.process.returncode is None:
            running.process.kill()
        await running.end()


def settings(base_url: str, notes: Path) -> str:
    server = small(env={"NOTES": str(notes)})
    table = "".join(f"{key} = {json.dumps(value)}\n" for key, value in server.items() if key != "env")
    route = f'[[routes]]\nname = "main"\nbase_url = "{base_url}"\nmodel = "fake"\n'
    return f"{route}[mcp.servers.one]\n{table}[mcp.servers.one.env]\nNOTES = {json.dumps(str(notes))}\n"


@pytest.mark.parametrize("status", [401, 404, None])
async def test_each_message_gets_its_error_at_no_cost_and_mcp_servers_start_once(
    tmp_path: Path, status: int | None
) -> None:
    count = WARM + MESSAGES
    async with opened(tmp_path, [failing(status)] * count if status else []) as hark:
        url = hark.server.base_url if status else "http://127.0.0.1:9/v1"
        notes = tmp_path / "notes"
        async with gateway(hark, settings(url, notes)) as served, served.ends() as ends:
            outcomes: list[dict[str, Any]] = []
            before = 0.0
            for number in range(count):
                if number == WARM:
                    before = served.cpu_seconds
                await served.say(f"message {number}")
                outcomes.append(await anext(ends))
            spent = (served.cpu_seconds - before) / MESSAGES
            assert {outcome["type"] for outcome in outcomes} == {"failed"}
            assert len({outcome["error"]["code"] for outcome in outcomes}) == 1
        assert notes.read_text().count("started") == 1
        assert len(hark.server.requests) == (count if status else 0)
    assert spent < CPU_SECONDS, f"{spent * 1000:.1f} ms of CPU for each message"


async def test_another_route_mends_it(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["well"])]) as hark:
        good = f'[[routes]]\nname = "good"\nbase_url = "{hark.server.base_url}"\nmodel = "fake"\n'
        bad = '[[routes]]\nname = "bad"\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "fake"\n'
        async with gateway(hark, good + bad) as served, served.ends() as ends:
            await served.say("/model bad")
            await served.say("/model good")
            await served.say("hello")
            assert (await anext(ends))["type"] == "completed"
