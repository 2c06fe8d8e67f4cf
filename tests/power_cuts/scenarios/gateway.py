"""A `hark serve` process with a fake model that calls the tools which the user's message names."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from tests.cli.command_line import INHERITED, NO_CERTIFICATES
from tests.fakes.models.behaviours import Exchange, call, delta
from tests.fakes.models.server import ModelServer
from tests.gateway_kills.model import message_text
from tests.power_cuts.scenarios.scenario import write_durably

MODEL_REQUESTS = 100_000
START_SECONDS = 60.0
TURN_SECONDS = 60.0
Steps = list[list[tuple[str, dict[str, Any]]]]

CONFIG = """
[[routes]]
name = "main"
base_url = "{model}"
model = "power"

[approvals]
mode = "all"

[serve]
port = {port}
"""


class Gateway:
    """A client of a running `hark serve`."""

    def __init__(self, http: aiohttp.ClientSession, address: str) -> None:
        self._http = http
        self._address = address

    async def post(self, path: str, **more: Any) -> dict[str, Any]:
        """Post a request and return the accepted response."""
        async with self._http.post(self._address + path, **more) as response:
            assert response.status == 202, f"{path}: {response.status} {await response.text()}"
            return await response.json()

    async def say(self, session: str, text: str, **more: Any) -> dict[str, Any]:
        """Send a message and return its receipt."""
        return await self.post(f"/api/sessions/{session}/messages", json={"text": text, **more})

    async def run_turn(self, session: str, steps: Steps, message: str) -> None:
        """Send a message that makes the model call these tools, and wait for the end of its turn."""
        text = msgspec.json.encode(steps).decode()
        async with self._http.get(f"{self._address}/api/sessions/{session}/events") as events:
            receipt = await self.say(session, text, id=message)
            async with asyncio.timeout(TURN_SECONDS):
                async for line in events.content:
                    event = json.loads(line[6:]) if line.startswith(b"data: ") else {"type": ""}
                    if event["type"] == "turn.ended" and event["turn"] == receipt["turn"]:
                        return
        raise AssertionError("the event stream ended before the turn")


@asynccontextmanager
async def open_gateway(home: Path, workspace: Path) -> AsyncGenerator[Gateway]:
    """Run `hark serve` on this home."""
    async with ModelServer([_answer] * MODEL_REQUESTS) as model:
        port = _free_port()
        config = CONFIG.format(model=model.base_url, port=port)
        write_durably(home / "config.toml", config.encode())
        process = await _start_server(home, workspace)
        try:
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TURN_SECONDS)) as http:
                yield Gateway(http, f"http://127.0.0.1:{port}")
        finally:
            process.send_signal(signal.SIGTERM)
            await process.wait()


async def _start_server(home: Path, workspace: Path) -> asyncio.subprocess.Process:
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
    environment |= {"HARK_HOME": str(home), "HOME": str(home.parent), **NO_CERTIFICATES}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hark", "serve"), stdout=pipe, stderr=pipe, cwd=workspace, env=environment
    )
    assert process.stdout is not None
    assert process.stderr is not None
    line = await asyncio.wait_for(process.stdout.readline(), START_SECONDS)
    if not line.startswith(b"hark: serving on"):
        raise RuntimeError(f"hark serve ended: {(await process.stderr.read()).decode()[-2000:]}")
    return process


async def try_start(home: Path, workspace: Path) -> str:
    """Start `hark serve` on this home and stop it. Return its error message, or ""."""
    config = CONFIG.format(model="http://127.0.0.1:9/v1", port=_free_port())
    write_durably(home / "config.toml", config.encode())
    try:
        process = await _start_server(home, workspace)
    except RuntimeError as error:
        return str(error)
    process.send_signal(signal.SIGTERM)
    await process.wait()
    return ""


async def _answer(exchange: Exchange) -> None:
    """Call the tools of the next step of the last user message, or end the turn."""
    messages: list[dict[str, Any]] = exchange.request.body["messages"]
    last = max(number for number, message in enumerate(messages) if message["role"] == "user")
    step = sum(message["role"] == "assistant" for message in messages[last:])
    try:
        steps: Steps = json.loads(message_text(messages[last]))
    except json.JSONDecodeError:
        steps = []
    await exchange.begin()
    if step < len(steps):
        calls = [
            call(number, f"call_{len(messages)}_{number}", name, json.dumps(arguments))
            for number, (name, arguments) in enumerate(steps[step])
        ]
        await exchange.send_events(delta(tool_calls=calls), delta("tool_calls"))
    else:
        await exchange.send_events(delta(content="Done."), delta("stop"))
    await exchange.end()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
