"""Runs Hark commands as a user would: as processes, with a separate home and a fake model."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.models.behaviours import Behaviour, Exchange, call, delta, events
from tests.fakes.models.server import ModelServer

INHERITED = ("PATH", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH")
# No fake server uses TLS, and reading the system's certificates takes a good part of a command's start time.
NO_CERTIFICATES = {"SSL_CERT_FILE": os.devnull}


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A command's exit code and output."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class RunningCommand:
    """A running command, with its input and output."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._err = b""

    async def read_line(self) -> str:
        """Return the next line from stdout."""
        assert self.process.stdout is not None
        return (await self.process.stdout.readline()).decode()

    async def wait_for_line(self, text: str) -> str:
        """Read stdout until a line contains this text, and return that line."""
        while text not in (line := await self.read_line()):
            assert line, f"the output ended before {text!r}: {await self.process.communicate()}"
        return line

    async def wait_for_stderr(self, text: str) -> None:
        """Wait until stderr contains this text."""
        assert self.process.stderr is not None
        while text.encode() not in self._err:
            piece = await self.process.stderr.read(4096)
            assert piece, f"stderr ended before {text!r}: {self._err!r}"
            self._err += piece

    def type(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())

    def signal(self, number: signal.Signals) -> float:
        """Send a signal and return the time at which it was sent."""
        self.process.send_signal(number)
        return time.perf_counter()

    async def wait_for_end(self) -> CommandResult:
        """Close the command's input, wait for the command to exit, and return the result."""
        out, err = await self.process.communicate(b"")
        assert self.process.returncode is not None
        return CommandResult(self.process.returncode, out.decode(), (self._err + err).decode())


class Hark:
    """A home directory, and the commands that run on it."""

    def __init__(self, home: Path, server: ModelServer) -> None:
        self.home = home
        self.folder = home  # the commands' working directory
        self.server = server
        self.environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
        self.environment |= {"HARK_HOME": str(home), "HOME": str(home), **NO_CERTIFICATES}

    def configure(self, text: str = "") -> None:
        """Write the settings: a route to the fake model, followed by this text."""
        self.home.mkdir(parents=True, exist_ok=True)
        route = f'[[routes]]\nname = "main"\nbase_url = "{self.server.base_url}"\nmodel = "fake"\n'
        (self.home / "config.toml").write_text(route + text)

    async def start(self, *arguments: str, **environment: str) -> RunningCommand:
        """Start a command and leave its input open."""
        return await self.start_python("-m", "hark.cli.main", *arguments, **environment)

    async def start_python(self, *arguments: str, **environment: str) -> RunningCommand:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd=self.folder,
            env={**self.environment, **environment},
        )
        return RunningCommand(process)

    async def wait_for_request(self, number: int, running: RunningCommand) -> None:
        """Wait until the model has received this many requests. Fails if the command ends first."""
        request = asyncio.ensure_future(self.server.request(number))
        ended = asyncio.ensure_future(running.process.wait())
        await asyncio.wait([request, ended], return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        assert request.done(), f"the command ended before its request: {await running.wait_for_end()}"

    async def run(self, *arguments: str, typed: str = "", **environment: str) -> CommandResult:
        """Run a command until it exits, with `typed` as its input."""
        running = await self.start(*arguments, **environment)
        running.type(typed)
        return await running.wait_for_end()


@asynccontextmanager
async def open_hark(tmp_path: Path, script: Sequence[Behaviour] = ()) -> AsyncGenerator[Hark]:
    """Yield a home whose only route is a fake model with this script."""
    async with ModelServer(script) as server:
        hark = Hark(tmp_path / "home", server)
        hark.configure()
        yield hark


def shell_call(command: str) -> Behaviour:
    """Return a scripted reply that calls the shell once."""
    tool_call = call(0, "call_1", "shell", json.dumps({"command": command}))
    return events([delta(tool_calls=[tool_call]), delta("tool_calls")])


def gated(gate: asyncio.Event, ending: str) -> Behaviour:
    """Return a scripted reply that starts immediately, and ends with `ending` when the gate opens."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send_events(delta(content="well, "))
        await gate.wait()
        await exchange.send_events(delta(content=ending), delta("stop"))
        await exchange.end()

    return play


@asynccontextmanager
async def open_owned_session(tmp_path: Path, *script: Behaviour) -> AsyncGenerator[tuple[Hark, RunningCommand]]:
    """Yield a home and a running chat in session `demo` whose first message is waiting for the model."""
    async with open_hark(tmp_path, script) as hark:
        owner = await hark.start("--plain", "--session", "demo")
        owner.type("first\n")
        await hark.wait_for_request(1, owner)
        yield hark, owner
