"""`hark serve` as a process of its own, and what it costs there."""

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


class Gateway:
    """A gateway that runs, and the account of its process."""

    def __init__(self, process: "subprocess.Popen[str]", base: str, home: Path) -> None:
        self.base = base
        self.home = home
        self.pid = process.pid
        self._process = process

    @property
    def cpu_seconds(self) -> float:
        """What it has used so far, of all its threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory_mb(self) -> float:
        """What it holds in memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def client(self) -> aiohttp.ClientSession:
        """Return an HTTP client for it, with as many connections as are asked for."""
        return aiohttp.ClientSession(
            self.base, connector=aiohttp.TCPConnector(limit=200), timeout=aiohttp.ClientTimeout(120)
        )

    def end(self) -> int:
        """Ask it to end, as a service manager does; return its exit code."""
        self._process.terminate()
        return self._process.wait(60)


@contextmanager
def gateway(base_url: str, model: str = "fast", settings: str = "") -> Generator[Gateway]:
    """Run `hark serve` on a fresh home as long as the block lasts."""
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
                assert "serving on" in line, f"hark serve said {line!r} and {Path(home, 'stderr').read_text()!r}"
                yield Gateway(process, line.rpartition(" ")[2].strip(), Path(home))
            finally:
                if process.poll() is None:
                    process.kill()


@contextmanager
def stream_server() -> Generator[str]:
    """Run the fast model server as long as the block lasts; give its base_url."""
    command = [sys.executable, "-m", "bench.stream_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}/v1"
        finally:
            process.kill()


async def say(client: aiohttp.ClientSession, session: str, text: str) -> dict[str, Any]:
    """Say something; return its receipt."""
    async with client.post(f"/api/sessions/{session}/messages", json={"text": text}) as response:
        assert response.status == 202, await response.text()
        return await response.json()


async def interrupt(client: aiohttp.ClientSession, session: str) -> dict[str, Any]:
    """Stop what runs; return how it ended."""
    async with client.post(f"/api/sessions/{session}/interrupt") as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def metric(client: aiohttp.ClientSession, name: str) -> float:
    """Return one number of /metrics, named with its labels."""
    async with client.get("/metrics") as response:
        found = re.search(rf"^{re.escape(name)} (\S+)$", await response.text(), re.MULTILINE)
    assert found, f"/metrics has no {name}"
    return float(found[1])


async def tokens_sent(base_url: str) -> int:
    """Return how many tokens the fast model server has sent."""
    async with aiohttp.ClientSession() as http, http.get(base_url) as response:
        return json.loads(await response.read())["tokens"]


async def until_idle(client: aiohttp.ClientSession) -> None:
    """Return when no turn runs."""
    while await metric(client, "hark_turns_running"):  # noqa: ASYNC110 another process tells
        await asyncio.sleep(0.05)
