"""A `hark serve` process that the test kills with SIGKILL and restarts with the same home."""

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hark.processes.cookies import COOKIE_NAME
from tests.cli.command_line import INHERITED, NO_CERTIFICATES

START_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class Addresses:
    """The URLs of the servers that the gateway connects to, and the gateway's own port."""

    telegram: str
    slack: str
    discord: str
    programs: str
    model: str
    speech: str
    port: int


def render_config(at: Addresses) -> str:
    """Return the gateway's config.toml."""
    return f"""
[[routes]]
name = "main"
base_url = "{at.model}"
model = "kills"
context_tokens = 10000000

[approvals]
mode = "all"

[delivery]
default = "interrupt"
slack = "queue"

[voice]
stt = "openai"
base_url = "{at.speech}"
api_key_env = ""

[serve]
port = {at.port}
drain_seconds = 20

[surfaces.telegram]
token_env = "FIRE_TELEGRAM"
api_base = "{at.telegram}"
allow = ["*"]
per_minute = 1000000
poll_seconds = 2

[surfaces.slack]
token_env = "FIRE_SLACK"
app_token_env = "FIRE_SLACK_APP"
api_base = "{at.slack}/api/"
allow = ["*"]
per_minute = 1000000

[surfaces.webhook]
per_minute = 1000000
streams = true

[surfaces.webhook.hooks.ci]
secret_env = "FIRE_HOOK"
url = "{at.programs}"

[surfaces.discord]
token_env = "FIRE_DISCORD"
api_base = "{at.discord}"
allow = ["*"]
per_minute = 1000000
"""


class Gateway:
    """Runs the gateway as one process at a time, which can be killed and restarted on the same home."""

    def __init__(self, home: Path, secrets: dict[str, str]) -> None:
        self.kills = 0
        self.dead: list[int] = []
        self.ready_seconds: list[float] = []
        self.lifetimes: list[tuple[float, float]] = []
        self._home = home
        self._environment = {name: os.environ[name] for name in INHERITED if name in os.environ} | secrets
        self._environment |= {"HARK_HOME": str(home), "HOME": str(home.parent), **NO_CERTIFICATES}
        self._environment.pop(COOKIE_NAME, None)
        self._process: asyncio.subprocess.Process | None = None
        self._started_at = 0.0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start the gateway and wait until it reports that it is serving."""
        began = time.perf_counter()
        errors = os.open(self._home.parent / "stderr", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hark", "serve"),
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            cwd=self._home.parent,
            env=self._environment,
        )
        os.close(errors)
        self._started_at = time.time()
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), START_SECONDS)
        if not line.startswith(b"hark: serving on"):
            raise RuntimeError(f"hark serve ended: {(self._home.parent / 'stderr').read_text()[-2000:]}")
        self.ready_seconds.append(time.perf_counter() - began)

    def kill_now(self) -> None:
        """Kill the gateway without waiting for its exit."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGKILL)

    async def kill(self) -> None:
        """Kill the gateway and wait until it has exited."""
        assert self._process is not None
        if self._process.returncode is None:
            self.kill_now()
        await self._process.wait()
        self.kills += 1
        self._record_end()

    async def stop(self) -> int:
        """Stop the gateway with SIGTERM and return its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            code = await asyncio.wait_for(self._process.wait(), 60.0)
        except TimeoutError:
            self._process.kill()
            code = await self._process.wait()
        self._record_end()
        return code

    def _record_end(self) -> None:
        assert self._process is not None
        self.dead.append(self._process.pid)
        self.lifetimes.append((self._started_at, time.time()))
