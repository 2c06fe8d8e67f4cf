"""A Python process that keeps its variables from one piece of code to the next."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from hark.processes.pipe import PipeReader, PipeWriter, inherited
from hark.processes.start import Command, Launcher, first_of, high_pair
from hark.processes.tree import has_exited

WORKER = Path(__file__).with_name("interpreter.py")
BETWEEN_BYTES = 10_000
_BOOT = "import sys; __file__ = sys.argv[2]; exec(compile(open(__file__).read(), __file__, 'exec'))"


class CodeResult(Struct, frozen=True):
    """How a piece of code ended."""

    is_error: bool
    note: str


class PythonProcess:
    """A running worker. Whoever made it calls `kill`, however it ends."""

    def __init__(self, launcher: Launcher, workspace: Path) -> None:
        """Start it.

        Raises:
            OSError, ValueError: The system can't start it, or walls are required and there are none.
        """
        self._is_killed = False
        self._gone = asyncio.Event()
        self._heard = bytearray()
        self._answered = asyncio.Event()
        self._between = bytearray()
        self._receive: Callable[[bytes], None] = self._keep
        ours, theirs = high_pair()
        with inherited(ours, theirs):
            words = [python_of(workspace), "-X", "utf8", "-c", _BOOT, str(theirs), str(WORKER)]
            environment = {"MPLBACKEND": "Agg", **launcher.environment}
            launch = launcher.launch(words, workspace, workspace, environment)
            launch = msgspec.structs.replace(launch, inherited=(theirs,))
            self._command = Command(launch, lambda piece: self._receive(piece))
        self._writer = PipeWriter(os.dup(ours))
        self._reader = PipeReader(ours, self._hear)

    @property
    def is_alive(self) -> bool:
        """False when it has ended, which may be between two pieces of code."""
        return not has_exited(self._command.pid, 0)

    async def run(self, code: str, receive: Callable[[bytes], None]) -> CodeResult | None:
        """Run code; `receive` gets what it prints. None when the process ended before the code did.

        After a cancel the process must be killed: its code runs on.
        """
        receive(bytes(self._between))
        self._between.clear()
        self._receive = receive
        self._heard.clear()
        self._answered.clear()
        await self._writer.write(msgspec.json.encode({"code": code}) + b"\n")
        await first_of(self._answered.wait, self._command.tree.exited)
        if not self._answered.is_set():
            await self._command.output.ended()
            return None
        self._command.output.drain()
        self._receive = self._keep
        try:
            return msgspec.json.decode(self._heard, type=CodeResult)
        except msgspec.DecodeError:  # the code wrote into the line
            return None

    async def kill(self) -> int | None:
        """End it with all that it started; return its exit code, or minus the signal that ended it.

        More than once is once: a session may end while its code runs.
        """
        if self._is_killed:
            await self._gone.wait()
            return self._command.exit_code
        self._is_killed = True
        try:
            await self._command.stop(grace_seconds=0)
        finally:
            self._reader.close()
            self._writer.close()
            self._gone.set()
        return self._command.exit_code

    def _hear(self, piece: bytes) -> None:
        self._heard += piece
        if self._heard.endswith(b"\n"):
            self._answered.set()

    def _keep(self, piece: bytes) -> None:
        """What a thread of it prints between two pieces of code is shown with the next."""
        self._between += piece
        del self._between[:-BETWEEN_BYTES]


def python_of(workspace: Path) -> str:
    """Return the interpreter of the project in this folder, or else the one that runs here."""
    own = workspace / ".venv" / "bin" / "python"
    return str(own) if os.access(own, os.X_OK) else sys.executable
