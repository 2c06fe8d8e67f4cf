"""The command line as a person runs it: processes on a home of their own, with a fake model."""

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
# No fake speaks TLS, and to read the system's certificates is a good part of what a command's start costs.
NO_CERTIFICATES = {"SSL_CERT_FILE": os.devnull}


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class Running:
    """A command that runs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._err = b""

    async def line(self) -> str:
        """Return the next line on stdout."""
        assert self.process.stdout is not None
        return (await self.process.stdout.readline()).decode()

    async def until(self, words: str) -> str:
        """Return the first line on stdout that has these words."""
        while words not in (line := await self.line()):
            assert line, f"the output ended before {words!r}: {await self.process.communicate()}"
        return line

    async def said(self, words: str) -> None:
        """Return when stderr has these words."""
        assert self.process.stderr is not None
        while words.encode() not in self._err:
            piece = await self.process.stderr.read(4096)
            assert piece, f"stderr ended before {words!r}: {self._err!r}"
            self._err += piece

    def type(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())

    def signal(self, number: signal.Signals) -> float:
        """Send a signal; return when."""
        self.process.send_signal(number)
        return time.perf_counter()

    async def end(self) -> Ended:
        """Close its input and return how it ended."""
        out, err = await self.process.communicate(b"")
        assert self.process.returncode is not None
        return Ended(self.process.returncode, out.decode(), (self._err + err).decode())


class Hark:
    """A home, and the commands that are run on it."""

    def __init__(self, home: Path, server: ModelServer) -> None:
        self.home = home
        self.folder = home  # where its commands are run
        self.server = server
        self.environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
        self.environment |= {"HARK_HOME": str(home), "HOME": str(home), **NO_CERTIFICATES}

    def configure(self, text: str = "") -> None:
        """Write the settings: this text, behind one route to the fake model."""
        self.home.mkdir(parents=True, exist_ok=True)
        route = f'[[routes]]\nname = "main"\nbase_url = "{self.server.base_url}"\nmodel = "fake"\n'
        (self.home / "config.toml").write_text(route + text)

    async def start(self, *words: str, **environment: str) -> Running:
        """Start a command; its input stays open."""
        return await self.start_python("-m", "hark.cli.main", *words, **environment)

    async def start_python(self, *words: str, **environment: str) -> Running:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *words,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd=self.folder,
            env={**self.environment, **environment},
        )
        return Running(process)

    async def reached(self, number: int, running: Running) -> None:
        """Return when the model has got so many requests; fails if the command ends instead."""
        request = asyncio.ensure_future(self.server.request(number))
        ended = asyncio.ensure_future(running.process.wait())
        await asyncio.wait([request, ended], return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        assert request.done(), f"it ended before its request: {await running.end()}"

    async def run(self, *words: str, typed: str = "", **environment: str) -> Ended:
        """Run a command to its end, with this input."""
        running = await self.start(*words, **environment)
        running.type(typed)
        return await running.end()


@asynccontextmanager
async def opened(tmp_path: Path, script: Sequence[Behaviour] = ()) -> AsyncGenerator[Hark]:
    """A home whose one route leads to a model that behaves like this."""
    async with ModelServer(script) as server:
        hark = Hark(tmp_path / "home", server)
        hark.configure()
        yield hark


def shell_call(command: str) -> Behaviour:
    """A reply that asks for one shell command."""
    one = call(0, "call_1", "shell", json.dumps({"command": command}))
    return events([delta(tool_calls=[one]), delta("tool_calls")])


def gated(gate: asyncio.Event, words: str) -> Behaviour:
    """A reply that begins, and ends with these words when the gate is open."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.events(delta(content="well, "))
        await gate.wait()
        await exchange.events(delta(content=words), delta("stop"))
        await exchange.end()

    return play


@asynccontextmanager
async def owned(tmp_path: Path, *script: Behaviour) -> AsyncGenerator[tuple[Hark, Running]]:
    """A chat in session `demo` that has said its first line and waits for the model."""
    async with opened(tmp_path, script) as hark:
        owner = await hark.start("--plain", "--session", "demo")
        owner.type("first\n")
        await hark.reached(1, owner)
        yield hark, owner
