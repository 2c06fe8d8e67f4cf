"""The fake model server in its own process, and an agent that talks to it."""

import http.client
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import hark


@dataclass(frozen=True, slots=True)
class Server:
    """Where it listens."""

    port: int

    @property
    def base_url(self) -> str:
        """What a route is given."""
        return f"http://127.0.0.1:{self.port}/v1"

    def requests(self) -> list[dict[str, Any]]:
        """Return what it has seen, with the times of arrival and leave by time.perf_counter. Blocks."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", "/_requests")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


@contextmanager
def model_server() -> Generator[Server]:
    """Run a server as long as the block lasts; the request's model names its behaviour."""
    command = [sys.executable, "-m", "tests.fakes.models.server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Server(json.loads(process.stdout.readline())["port"])
        finally:
            process.kill()


@asynccontextmanager
async def agent(
    server: Server, model: str, store: str = "memory", provider: str = "openai"
) -> AsyncGenerator[hark.Agent]:
    """Open an agent on a fresh home, as a program would."""
    with TemporaryDirectory(prefix="hark-bench-") as home:
        route = {"provider": provider, "base_url": server.base_url, "model": model}
        async with hark.open(home=home, workspace=home, routes=[route], store={"url": store}) as opened:
            yield opened
