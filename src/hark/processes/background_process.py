"""One process in the background: it outlives the call that started it, and even its turn."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping
from time import monotonic

import anyio

from hark.processes.output_tail import Unread
from hark.processes.pipe import PipeWriter
from hark.processes.race import first_of
from hark.processes.shell_command import ShellCommand
from hark.processes.tree import GRACE_SECONDS, StopResult


class BackgroundProcess:
    """A command that runs until it ends, is stopped, or is let go. Its task is its own: no turn's end reaches it."""

    def __init__(self, name: str, text: str, shell: ShellCommand, keyboard: PipeWriter, output: Unread) -> None:
        self.name = name
        self.text = text
        self.output = output
        self.stopped = StopResult()
        self._shell = shell
        self._keyboard = keyboard
        self._began = monotonic()
        self._seconds: float | None = None
        self._grace_seconds = GRACE_SECONDS
        self._is_stopping = asyncio.Event()
        self._is_hurrying = asyncio.Event()
        self._is_let_go = False
        self._ended = asyncio.Event()
        self._task = asyncio.create_task(self._live(), name=f"background process {name}")

    @property
    def is_running(self) -> bool:
        """False once all of it has ended, or it was let go."""
        return not self._ended.is_set()

    @property
    def pid(self) -> int:
        """The pid of its first process."""
        return self._shell.command.pid

    @property
    def cookie(self) -> str:
        """What all of it carries in its environment."""
        return self._shell.command.tree.cookie

    @property
    def exit_code(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None as long as it runs."""
        return None if self.is_running else self._shell.exit_code

    @property
    def seconds(self) -> float:
        """How long it has been running, or ran."""
        return monotonic() - self._began if self._seconds is None else self._seconds

    @property
    def how(self) -> str:
        """How it is, in a few words."""
        code = self.exit_code
        if self._is_let_go:
            return "detached"
        if code is None:
            return f"running for {self.seconds:.0f} s"
        if code < 0:
            return f"ended by signal {-code} ({signal.strsignal(-code)}) after {self.seconds:.1f} s"
        return f"ended with exit code {code} after {self.seconds:.1f} s"

    def __str__(self) -> str:
        new = f", {self.output.count:,} characters to read" if self.output.count else ""
        return f"{self.name}: {self.text}\n  {self.how}, pid {self.pid}{new}"

    async def ended(self) -> None:
        """Return when all of it has ended. Safe to cancel."""
        await self._ended.wait()

    async def write(self, text: str, *, closes: bool = False) -> int:
        """Write to its standard input; return how many bytes it took. With `closes` it reads an end behind that."""
        taken = await self._keyboard.write(text.encode(errors="replace"))
        if closes:
            self._keyboard.close()
        return taken

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """End all of it; a cancel of this does not stop the stopping. More than once is once."""
        if not self._is_stopping.is_set():
            self._grace_seconds = grace_seconds
            self._is_stopping.set()
        await self._ended.wait()

    async def kill(self) -> None:
        """End all of it without another wait for it to tidy up, also when it is being stopped already."""
        if self._is_stopping.is_set():
            self._is_hurrying.set()
        await self.stop(grace_seconds=0)

    def let_go(self, file: int, environment: Mapping[str, str]) -> None:
        """Leave it running for good; what it prints goes into the file from now on, by a small process of its own.

        Raises:
            OSError: That process can't be started; nothing has changed then.
        """
        printed = self._shell.command.output_descriptor
        held = self._keyboard.descriptors  # or it would read an end when this process leaves
        os.set_blocking(printed, True)
        try:
            writer = subprocess.Popen(  # it ends when nobody prints any more
                ["cat"],  # noqa: S607 - cat is where the system has it
                stdin=printed,
                stdout=file,
                stderr=subprocess.DEVNULL,
                env=environment,
                pass_fds=held,
                start_new_session=True,
            )
        except OSError:
            os.set_blocking(printed, False)
            raise
        writer.returncode = 0  # nobody here waits for it
        self._is_let_go = True
        self._shell.let_go()
        self._is_stopping.set()

    async def _live(self) -> None:
        try:
            await first_of(self._shell.finished, self._is_stopping.wait)
        finally:
            if not self._is_let_go:
                with anyio.CancelScope(shield=True):  # bounded by the stop itself
                    await first_of(self._end, self._is_hurrying.wait)
            self._keyboard.close()
            self.output.close()
            self._seconds = monotonic() - self._began
            self._ended.set()

    async def _end(self) -> None:
        self.stopped = await self._shell.stop(self._grace_seconds)
