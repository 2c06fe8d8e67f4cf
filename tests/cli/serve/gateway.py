"""`hark serve` in a process of its own, and a client before it."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.cli.command_line import Hark, Running
from tests.waiting import until

MODULE = ("-m", "tests.cli.serve.serve_process")  # with settings in serve.json, and no chat surfaces
REAL = ("-m", "hark.cli.main", "serve")


class Served:
    """A gateway that runs in a process of its own."""

    def __init__(self, running: Running, client: aiohttp.ClientSession, base: str) -> None:
        self.running = running
        self.base = base
        self.client = client

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        async with self.client.request(method, path, json=body, **options) as response:
            return response.status, await response.json()

    async def say(self, session: str, words: str, **more: Any) -> Any:
        status, receipt = await self.call("POST", f"/api/sessions/{session}/messages", {"text": words, **more})
        assert status == 202, receipt
        return receipt

    async def texts(self, session: str) -> list[str]:
        _, body = await self.call("GET", f"/api/sessions/{session}/transcript")
        return [row["text"] for row in body["messages"]]

    async def until_text(self, session: str, words: str) -> list[str]:
        """Return the transcript's texts when one of them is this."""
        texts: list[str] = []

        async def is_there() -> bool:
            texts[:] = await self.texts(session)
            return words in texts

        await until(is_there, shows=lambda: texts)
        return texts

    async def at_rest(self) -> bool:
        """Return whether no turn is running."""
        return not (await self.call("GET", "/api/status"))[1]["running"]

    async def draining(self) -> bool:
        return await self.health() == "draining"

    async def health(self) -> str:
        return (await self.call("GET", "/healthz"))[1]["status"]


def configure(hark: Hark, **serve: Any) -> None:
    (hark.home / "serve.json").write_text(json.dumps({"serve": {"port": 0, **serve}}))


@asynccontextmanager
async def serving(
    hark: Hark, *words: str, program: Sequence[str] = MODULE, **environment: str
) -> AsyncGenerator[Served]:
    running = await hark.start_python(*program, *words, PYTHONPATH=str(Path.cwd()), **environment)
    try:
        line = await running.until("serving on")
        base = line.rpartition(" ")[2].strip()
        async with aiohttp.ClientSession(base, timeout=aiohttp.ClientTimeout(30)) as client:
            yield Served(running, client, base)
    finally:
        if running.process.returncode is None:
            running.process.kill()
        await running.end()
