"""The fake model server in a separate process, and an agent that uses it."""

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
class FakeModelServer:
    """A client for a running fake model server."""

    port: int

    @property
    def base_url(self) -> str:
        """The `base_url` for a route to the server."""
        return f"http://127.0.0.1:{self.port}/v1"

    def requests(self) -> list[dict[str, Any]]:
        """Return all requests so far, with their arrival and disconnect times (time.perf_counter). Blocks."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", "/_requests")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


@contextmanager
def run_model_server() -> Generator[FakeModelServer]:
    """Run a fake model server. The model name in a request selects the server's behaviour."""
    command = [sys.executable, "-m", "tests.fakes.models.server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield FakeModelServer(json.loads(process.stdout.readline())["port"])
        finally:
            process.kill()


@asynccontextmanager
async def open_agent(
    server: FakeModelServer, model: str, store: str = "memory", provider: str = "openai"
) -> AsyncGenerator[hark.Agent]:
    """Open an agent with a fresh home through the public API."""
    with TemporaryDirectory(prefix="hark-bench-") as home:
        route = {"provider": provider, "base_url": server.base_url, "model": model}
        async with hark.open(home=home, workspace=home, routes=[route], store={"url": store}) as opened:
            yield opened
