"""One run: starts an entry point with stubborn work, sends it two signals, and checks how it ended."""

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tests.cli.command_line import Hark, open_hark, shell_call
from tests.interrupts.interrupt_fixture import is_alive
from tests.surfaces.terminal.pseudo_terminal import PseudoTerminal, open_pseudo_terminal
from tests.waiting import at_most, until

EntryPoint = Literal["terminal", "plain", "piped", "prompt", "serve", "acp"]
Phase = Literal["startup", "work", "exit"]
ENTRY_POINTS: tuple[EntryPoint, ...] = ("terminal", "plain", "piped", "prompt", "serve", "acp")
PHASES: tuple[Phase, ...] = ("startup", "work", "exit")
CLOSE = "close"  # closes the terminal, or stdin if it is a pipe
SIGNALS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM, "SIGHUP": signal.SIGHUP}
CODES = {name: 128 + number for name, number in SIGNALS.items()} | {CLOSE: 129}
ARGUMENTS: dict[EntryPoint, tuple[str, ...]] = {
    "terminal": ("--session", "demo"),
    "plain": ("--plain", "--session", "demo"),
    "piped": ("--plain", "--session", "demo"),
    "prompt": ("-p", "go", "--session", "demo"),
    "serve": ("serve", "--port", "0"),
    "acp": ("acp",),
}
UNORDERED_SECONDS = 0.03
DEFAULT_MODES = {"?7", "?25"}
SETTINGS = """[approvals]
mode = "all"
[mcp.servers.stubborn]
command = "{python}"
args = ["{script}"]
"""
# Ignores signals and the end of its input, and starts a daemon without an environment.
MCP_SERVER = """
import json, signal, subprocess, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
subprocess.Popen(["sleep", "3600"], env={}, start_new_session=True)
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        answer = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        if request["method"] == "tools/list":
            answer = {"tools": []}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer}), flush=True)
time.sleep(3600)
"""
# A loop that ignores signals, a daemon without an environment, and a process with only the cookie in common.
COMMAND = (
    "trap '' INT TERM HUP; (setsid env -i sleep 3601 &); setsid sleep 3602 & touch started; while :; do sleep 1; done"
)


class Plan(Struct, frozen=True):
    """The entry point, the events and their times. The seed reproduces it, except for the speed of the machine."""

    entry_point: EntryPoint
    phase: Phase
    events: tuple[str, str]
    delay_seconds: float
    gap_seconds: float

    @classmethod
    def from_seed(cls, seed: int) -> "Plan":
        randomness = random.Random(seed)
        entry_point = ENTRY_POINTS[seed % len(ENTRY_POINTS)]
        phase = PHASES[seed // len(ENTRY_POINTS) % len(PHASES)]
        events = randomness.choice([*SIGNALS, CLOSE]), randomness.choice([*SIGNALS, CLOSE])
        delay_seconds = randomness.uniform(0, 1.5 if phase == "startup" else 0.1)
        gap_seconds = randomness.uniform(0, 0.6) if phase == "exit" else randomness.choice([0.0, 0.002, 0.05, 0.2])
        return cls(entry_point, phase, events, delay_seconds, gap_seconds)

    @property
    def has_terminal(self) -> bool:
        """Whether the entry point runs in a terminal, not on pipes."""
        return self.entry_point not in ("piped", "acp")

    def allowed_codes(self) -> set[int]:
        """Return the exit codes that name the first signal."""
        first, second = self.events
        if first == CLOSE and not self.has_terminal:
            return {0, 0 if second == CLOSE else CODES[second]}  # a closed input does not count as a signal
        if first == "SIGHUP" and self.entry_point == "serve":
            return {129, CODES[second], 143}  # a ready gateway reloads its settings instead
        # The kernel forgets the order of signals that are pending at the same time.
        return {CODES[first], CODES[second]} if self.gap_seconds < UNORDERED_SECONDS else {CODES[first]}


async def run_plan(plan: Plan, folder: Path) -> list[str]:
    """Carry out the plan and return the problems."""
    async with open_hark(folder, [shell_call(COMMAND) for _ in range(3)]) as hark:
        script = hark.home / "server.py"
        hark.configure(SETTINGS.format(python=sys.executable, script=script))
        script.write_text(MCP_SERVER)
        if plan.entry_point == "serve":
            await hark.run("send", "demo", "go")
        async with _start(plan, hark) as program:
            await _send_events(plan, hark, program)
            try:
                async with asyncio.timeout(at_most(2.0)):
                    code = await program.process.wait()
            except TimeoutError:
                return [f"still running {at_most(2.0):g} s later"]
            return await _find_problems(plan, hark, program, code)


@asynccontextmanager
async def _start(plan: Plan, hark: Hark) -> "AsyncGenerator[Program]":
    command = (sys.executable, "-m", "hark.cli.main", *ARGUMENTS[plan.entry_point])
    if plan.has_terminal:
        async with open_pseudo_terminal(hark.environment, command=command, directory=str(hark.home)) as terminal:
            if plan.entry_point == "terminal" and plan.phase != "startup":
                await terminal.until("›")
            if plan.entry_point in ("terminal", "plain"):
                terminal.type("go\r")
            yield Program(terminal.process, terminal)
        return
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=hark.home,
        env=hark.environment,
    )
    program = Program(process, None)
    talking = asyncio.create_task(program.talk(plan.entry_point, hark.home))
    try:
        yield program
    finally:
        talking.cancel()
        if process.returncode is None:
            process.kill()
            await process.wait()


class Program:
    """A running entry point, in a terminal or on pipes."""

    def __init__(self, process: asyncio.subprocess.Process, terminal: PseudoTerminal | None) -> None:
        self.process = process
        self.terminal = terminal
        self.output = b""

    async def talk(self, entry_point: EntryPoint, folder: Path) -> None:
        """Send the message over the pipes, then discard all output."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        with suppress(ConnectionError):
            if entry_point == "piped":
                self.process.stdin.write(b"go\n")
            else:
                self._request(1, "initialize", protocolVersion=1, clientCapabilities={})
                self._request(2, "session/new", cwd=str(folder), mcpServers=[])
                while line := await self.process.stdout.readline():
                    message = json.loads(line)
                    if message.get("id") == 2:
                        prompt = [{"type": "text", "text": "go"}]
                        self._request(3, "session/prompt", sessionId=message["result"]["sessionId"], prompt=prompt)
                        break
            await asyncio.gather(self.process.stdout.read(), self._read_errors(self.process.stderr))

    async def _read_errors(self, stream: asyncio.StreamReader) -> None:
        while data := await stream.read(4096):
            self.output += data

    def _request(self, number: int, method: str, **parameters: object) -> None:
        assert self.process.stdin is not None
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")

    def apply(self, event: str) -> None:
        """Send the signal, or close the terminal or the input."""
        if event != CLOSE:
            if self.process.returncode is None:
                with suppress(ProcessLookupError):
                    os.kill(self.process.pid, SIGNALS[event])  # asyncio's send_signal would take the exit code
        elif self.terminal is not None:
            self.terminal.close()
        else:
            assert self.process.stdin is not None
            self.process.stdin.close()

    @property
    def last_text(self) -> str:
        output = bytes(self.terminal.output) if self.terminal else self.output
        return output[-400:].decode(errors="replace")


async def _send_events(plan: Plan, hark: Hark, program: Program) -> None:
    if plan.phase != "startup":
        await until((hark.home / "started").exists, shows=lambda: program.last_text)
    await asyncio.sleep(plan.delay_seconds)
    program.apply(plan.events[0])
    await asyncio.sleep(plan.gap_seconds)
    program.apply(plan.events[1])
    is_reload = plan.entry_point == "serve" and plan.events[0] == "SIGHUP"
    is_quiet = plan.entry_point == "piped" and plan.events == (CLOSE, CLOSE)  # waits for its endless turn
    if is_reload or is_quiet:
        await asyncio.sleep(1.0)
        program.apply("SIGTERM")
        program.apply("SIGTERM")


async def _find_problems(plan: Plan, hark: Hark, program: Program, code: int) -> list[str]:
    problems: list[str] = []
    left = find_processes(hark.home)
    if left:
        await asyncio.sleep(0.2)
        still_left = find_processes(hark.home)
        problems.append(f"processes left: {left}, 200 ms later: {still_left}")
    code = 128 - code if code < 0 else code  # killed before Python could install a handler
    allowed = plan.allowed_codes() | ({143} if plan.events == (CLOSE, CLOSE) else set[int]())
    if code not in allowed:
        problems.append(f"exit code {code}, not one of {allowed}; output: {program.last_text!r}")
    terminal = program.terminal
    if terminal is not None and terminal.is_open:
        try:
            await until(lambda: _is_restored(terminal), seconds=2.0)
        except AssertionError:
            problems.append(f"terminal not restored: {terminal.settings} {terminal.screen.modes}")
    if "Traceback" in program.last_text and plan.phase != "startup":
        problems.append(f"traceback: {program.last_text}")
    return problems


def _is_restored(terminal: PseudoTerminal) -> bool:
    is_normal = not terminal.screen.is_alternate_screen and terminal.screen.modes <= DEFAULT_MODES
    return is_normal and terminal.settings == terminal.original_settings


def find_processes(home: Path) -> list[str]:
    """Return the live processes that work in the home directory or name it in their environment."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_ours = (process / "cwd").readlink().is_relative_to(home)
            if (is_ours or str(home).encode() in (process / "environ").read_bytes()) and is_alive(int(process.name)):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found
