"""Runs `hark serve` in a separate process and measures its CPU and memory usage."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

HARK = str(Path(sys.executable).with_name("hark"))
CONFIG = """
[[routes]]
name = "main"
base_url = "{base_url}"
model = "{model}"
api_key = "not-a-real-key"
[approvals]
mode = "all"
"""


class GatewayProcess:
    """A running `hark serve` process, and its resource usage."""

    def __init__(self, process: "subprocess.Popen[str]", base: str, home: Path) -> None:
        self.base = base
        self.home = home
        self.pid = process.pid
        self._process = process

    @property
    def cpu_seconds(self) -> float:
        """The CPU time used so far by all threads of the process."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory_mb(self) -> float:
        """The resident memory of the process."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def client(self) -> aiohttp.ClientSession:
        """Return an HTTP client for the gateway, with up to 200 connections."""
        return aiohttp.ClientSession(
            self.base, connector=aiohttp.TCPConnector(limit=200), timeout=aiohttp.ClientTimeout(120)
        )

    def terminate(self) -> int:
        """Terminate the process with SIGTERM, as a service manager does. Return its exit code."""
        self._process.terminate()
        return self._process.wait(60)


@contextmanager
def run_gateway(base_url: str, model: str = "fast", settings: str = "") -> Generator[GatewayProcess]:
    """Run `hark serve` with a fresh home."""
    with TemporaryDirectory(prefix="hark-bench-") as home:
        Path(home, "config.toml").write_text(CONFIG.format(base_url=base_url, model=model) + settings)
        environment = {**os.environ, "HARK_HOME": home}
        errors = Path(home, "stderr").open("w")  # noqa: SIM115 closed below
        process = subprocess.Popen(
            [HARK, "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=errors, text=True, cwd=home, env=environment
        )
        with errors, process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                assert "serving on" in line, (
                    f"hark serve wrote {line!r} to stdout and {Path(home, 'stderr').read_text()!r} to stderr"
                )
                yield GatewayProcess(process, line.rpartition(" ")[2].strip(), Path(home))
            finally:
                if process.poll() is None:
                    process.kill()


@contextmanager
def run_stream_server() -> Generator[str]:
    """Run the fake streaming model server, and yield its base URL."""
    command = [sys.executable, "-m", "bench.stream_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}/v1"
        finally:
            process.kill()


async def send_message(client: aiohttp.ClientSession, session: str, text: str) -> dict[str, Any]:
    """Send a message and return its receipt."""
    async with client.post(f"/api/sessions/{session}/messages", json={"text": text}) as response:
        assert response.status == 202, await response.text()
        return await response.json()


async def interrupt_turn(client: aiohttp.ClientSession, session: str) -> dict[str, Any]:
    """Stop the running turn. Return the API response, which includes the turn's outcome."""
    async with client.post(f"/api/sessions/{session}/interrupt") as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def read_metric(client: aiohttp.ClientSession, name: str) -> float:
    """Return the value of one metric. `name` includes the labels."""
    async with client.get("/metrics") as response:
        match = re.search(rf"^{re.escape(name)} (\S+)$", await response.text(), re.MULTILINE)
    assert match, f"/metrics has no {name}"
    return float(match[1])


async def count_sent_tokens(base_url: str) -> int:
    """Return the number of tokens that the stream server has sent."""
    async with aiohttp.ClientSession() as http, http.get(base_url) as response:
        return json.loads(await response.read())["tokens"]


async def wait_until_idle(client: aiohttp.ClientSession) -> None:
    """Wait until no turn is running."""
    while await read_metric(client, "hark_turns_running"):  # noqa: ASYNC110 the state is in another process
        await asyncio.sleep(0.05)
