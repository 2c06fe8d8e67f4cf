"""Starts an entry point in a terminal or on pipes, and sends it signals."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.cli.command_line import Hark
from tests.surfaces.terminal.pseudo_terminal import PseudoTerminal, open_pseudo_terminal
from tests.two_signals.plan import CLOSE, SIGNALS, EntryPoint, Plan

ARGUMENTS: dict[EntryPoint, tuple[str, ...]] = {
    "terminal": ("--session", "demo"),
    "plain": ("--plain", "--session", "demo"),
    "piped": ("--plain", "--session", "demo"),
    "prompt": ("-p", "go", "--session", "demo"),
    "serve": ("serve", "--port", "0"),
    "acp": ("acp",),
}
# The installed script, because `python -m` exits with code 1 after a SIGINT during its own start.
SCRIPT = Path(sys.executable).with_name("hark")


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
    def has_pending_signal(self) -> bool:
        """Whether the kernel has not delivered a signal yet, because the program didn't run since it was sent."""
        for status in Path(f"/proc/{self.process.pid}/task").glob("*/status"):
            with suppress(OSError):
                fields = (line.split() for line in status.read_text().splitlines())
                if any(field[0] in ("SigPnd:", "ShdPnd:") and int(field[1], 16) for field in fields):
                    return True
        return False

    @property
    def last_text(self) -> str:
        output = bytes(self.terminal.output) if self.terminal else self.output
        return output[-400:].decode(errors="replace")


@asynccontextmanager
async def start_program(plan: Plan, hark: Hark) -> AsyncGenerator[Program]:
    """Start the entry point of a plan and send it a message. It is killed at the end if it is still running."""
    command = (str(SCRIPT), *ARGUMENTS[plan.entry_point])
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
