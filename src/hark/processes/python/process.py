"""A Python process that keeps its variables from one piece of code to the next."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from hark.processes.launcher import Launcher, RunningCommand, create_channel, wait_for_first
from hark.processes.pipe import PipeReader, PipeWriter, pass_to_child
from hark.processes.tree import has_exited_within

WORKER_SCRIPT = Path(__file__).with_name("interpreter.py")
MAX_IDLE_OUTPUT_BYTES = 10_000
_BOOT = "import sys; __file__ = sys.argv[2]; exec(compile(open(__file__).read(), __file__, 'exec'))"


class CodeResult(Struct, frozen=True):
    """The result of running a piece of code."""

    is_error: bool
    note: str


class PythonProcess:
    """A running Python worker. The code that creates it must call `kill`, even if the worker ends on its own."""

    def __init__(self, launcher: Launcher, workspace: Path) -> None:
        """Start the worker.

        Raises:
            OSError, ValueError: The operating system can't start it, or the required sandbox isn't available.
        """
        self._is_killed = False
        self._has_exited = asyncio.Event()
        self._answer = bytearray()
        self._has_answered = asyncio.Event()
        self._idle_output = bytearray()
        self._receive: Callable[[bytes], None] = self._buffer_output
        parent_end, child_end = create_channel()
        with pass_to_child(parent_end, child_end):
            argv = [find_python(workspace), "-X", "utf8", "-c", _BOOT, str(child_end), str(WORKER_SCRIPT)]
            environment = {"MPLBACKEND": "Agg", **launcher.environment}
            launch = launcher.prepare(argv, workspace, workspace, environment)
            launch = msgspec.structs.replace(launch, inherited_descriptors=(child_end,))
            self._command = RunningCommand(launch, lambda piece: self._receive(piece))
        self._writer = PipeWriter(os.dup(parent_end))
        self._reader = PipeReader(parent_end, self._receive_answer)

    @property
    def is_alive(self) -> bool:
        """Whether the process is running. The process may end between two pieces of code."""
        return not has_exited_within(self._command.pid, 0)

    async def run(self, code: str, receive: Callable[[bytes], None]) -> CodeResult | None:
        """Run code and return its result. `receive` gets the output. Returns None if the process ended first.

        After a cancel the process must be killed, because its code is still running.
        """
        receive(bytes(self._idle_output))
        self._idle_output.clear()
        self._receive = receive
        self._answer.clear()
        self._has_answered.clear()
        await self._writer.write(msgspec.json.encode({"code": code}) + b"\n")
        await wait_for_first(self._has_answered.wait, self._command.tree.wait_until_root_exited)
        if not self._has_answered.is_set():
            await self._command.output.wait_until_ended()
            return None
        self._command.output.drain()
        self._receive = self._buffer_output
        try:
            return msgspec.json.decode(self._answer, type=CodeResult)
        except msgspec.DecodeError:  # the code wrote to the connection itself
            return None

    async def kill(self) -> int | None:
        """Kill the process and all its descendants. Return its exit code, or minus the number of the signal.

        May be called repeatedly, because a session may end while its code runs.
        """
        if self._is_killed:
            await self._has_exited.wait()
            return self._command.exit_code
        self._is_killed = True
        try:
            await self._command.stop(grace_seconds=0)
        finally:
            self._reader.close()
            self._writer.close()
            self._has_exited.set()
        return self._command.exit_code

    def _receive_answer(self, chunk: bytes) -> None:
        self._answer += chunk
        if self._answer.endswith(b"\n"):
            self._has_answered.set()

    def _buffer_output(self, chunk: bytes) -> None:
        """Buffer output that threads print between two pieces of code, to show it with the next piece's output."""
        self._idle_output += chunk
        del self._idle_output[:-MAX_IDLE_OUTPUT_BYTES]


def find_python(workspace: Path) -> str:
    """Return the Python interpreter of the project's virtual environment, or else the current one."""
    project_python = workspace / ".venv" / "bin" / "python"
    return str(project_python) if os.access(project_python, os.X_OK) else sys.executable
