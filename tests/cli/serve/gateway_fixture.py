"""Runs `hark serve` as a process, with an HTTP client for its API."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.cli.command_line import Hark, RunningCommand
from tests.waiting import until

MODULE = ("-m", "tests.cli.serve.serve_process")  # with settings in serve.json, and without chat surfaces
REAL_COMMAND = ("-m", "hark.cli.main", "serve")


class ServedGateway:
    """A gateway that runs in a separate process."""

    def __init__(self, running: RunningCommand, client: aiohttp.ClientSession, base: str) -> None:
        self.running = running
        self.base = base
        self.client = client

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        async with self.client.request(method, path, json=body, **options) as response:
            return response.status, await response.json()

    async def say(self, session: str, text: str, **fields: Any) -> Any:
        status, receipt = await self.call("POST", f"/api/sessions/{session}/messages", {"text": text, **fields})
        assert status == 202, receipt
        return receipt

    async def texts(self, session: str) -> list[str]:
        _, body = await self.call("GET", f"/api/sessions/{session}/transcript")
        return [row["text"] for row in body["messages"]]

    async def until_text(self, session: str, text: str) -> list[str]:
        """Wait until the transcript contains a message with this text. Return the texts of all messages."""
        texts: list[str] = []

        async def is_in_transcript() -> bool:
            texts[:] = await self.texts(session)
            return text in texts

        await until(is_in_transcript, shows=lambda: texts)
        return texts

    async def is_idle(self) -> bool:
        """Return whether no turn is running."""
        return not (await self.call("GET", "/api/status"))[1]["running"]

    async def is_draining(self) -> bool:
        return await self.health() == "draining"

    async def health(self) -> str:
        return (await self.call("GET", "/healthz"))[1]["status"]


def configure(hark: Hark, **serve: Any) -> None:
    (hark.home / "serve.json").write_text(json.dumps({"serve": {"port": 0, **serve}}))


@asynccontextmanager
async def serve_gateway(
    hark: Hark, *arguments: str, program: Sequence[str] = MODULE, **environment: str
) -> AsyncGenerator[ServedGateway]:
    running = await hark.start_python(*program, *arguments, PYTHONPATH=str(Path.cwd()), **environment)
    try:
        line = await running.wait_for_line("serving on")
        base = line.rpartition(" ")[2].strip()
        async with aiohttp.ClientSession(base, timeout=aiohttp.ClientTimeout(30)) as client:
            yield ServedGateway(running, client, base)
    finally:
        if running.process.returncode is None:
            running.process.kill()
        await running.wait_for_end()
