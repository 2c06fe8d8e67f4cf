"""The processes in the background, by session: they outlive an interrupt, but neither their session nor the app."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from time import monotonic

import anyio

from hark.disk.private_files import open_private
from hark.processes.cookies import Detached, with_cookie
from hark.processes.output import Unread, new_output
from hark.processes.pipe import PipeWriter, inherited
from hark.processes.shell import ShellCommand, ShellStates, start_shell
from hark.processes.start import Launcher, first_of
from hark.processes.tree import GRACE_SECONDS, StopResult

RUNNING_AT_MOST = 32
ENDED_AT_MOST = 20
KILL_SECONDS = 0.6


class BackgroundProcess:
    """A command that runs until it ends, is stopped, or is let go. Its task is its own: no turn's end reaches it."""

    def __init__(self, name: str, text: str, shell: ShellCommand, keyboard: PipeWriter, output: Unread) -> None:
        self.name = name
        self.text = text
        self.output = output
        self.pid = shell.pid
        self.cookie = shell.tree.cookie
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
        printed = self._shell.output.descriptor
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


class BackgroundRefused(Exception):
    """It can't be done; the text says why, and what to do."""


class Background:
    """Starts processes, each of which belongs to a session. They begin in the folder of the session's shell."""

    def __init__(self, launcher: Launcher, states: ShellStates, detached: Detached) -> None:
        self._launcher = launcher
        self.states = states
        self._detached = detached
        self._processes: dict[str, dict[str, BackgroundProcess]] = {}
        self._names = 0
        self._is_closed = False

    def start(self, session: str, workspace: Path, text: str, name: str = "") -> BackgroundProcess:
        """Start a command; it is whole when this returns, and nothing was started when it raises.

        Raises:
            BackgroundRefused: The name is taken, there are too many, or the app is ending.
            OSError, ValueError: The system can't start it.
        """
        self._check(session, name)
        output = Unread(new_output(self._launcher.outputs, "process", short_bytes=0))
        state, _ = self.states.of(session, workspace, self._launcher.environment)
        theirs, ours = os.pipe()
        with inherited(ours, theirs):
            shell = start_shell(self._launcher, text, workspace, state, output.receive, theirs)
        self._names += 1
        process = BackgroundProcess(name or f"p{self._names}", text, shell, PipeWriter(ours), output)
        kept = self._processes.setdefault(session, {})
        kept.pop(process.name, None)
        kept[process.name] = process
        ended = [one for one in kept.values() if not one.is_running]
        for one in ended[: max(0, len(ended) - ENDED_AT_MOST)]:
            self.forget(session, one)
        return process

    def of(self, session: str) -> tuple[BackgroundProcess, ...]:
        """Return a session's processes, the ones that ended not long ago too."""
        return tuple(self._processes.get(session, {}).values())

    def get(self, session: str, name: str) -> BackgroundProcess | None:
        """Return a session's process of that name, if there is one."""
        return self._processes.get(session, {}).get(name)

    def forget(self, session: str, process: BackgroundProcess) -> None:
        """List it no more; it must have ended."""
        self._processes.get(session, {}).pop(process.name, None)

    def detach(self, session: str, name: str) -> str:
        """Let a process go at a person's wish: it outlives session and app. Return what became of it.

        Raises:
            BackgroundRefused: There is no such process, or it can't be let go.
        """
        process = self.get(session, name)
        if process is None or not process.is_running:
            raise BackgroundRefused(f"No process named {name} runs in this session.")
        path = process.output.whole.path
        if path is None:
            raise BackgroundRefused(f"{name} can't be detached: there is no file for what it prints.")
        try:
            self._detached.note(process.cookie)
            file = open_private(path, os.O_WRONLY | os.O_APPEND)
            try:
                process.let_go(file, with_cookie(self._launcher.environment, process.cookie))
            finally:
                os.close(file)
        except OSError as error:
            raise BackgroundRefused(f"{name} can't be detached: {error}.") from error
        self.forget(session, process)
        return f"{name} is detached and runs on as process {process.pid}; its output is in {path}"

    async def end(self, session: str) -> None:
        """End what a session has running, within a second: the session is over."""
        await _end_all(self._processes.pop(session, {}).values())

    async def close(self) -> None:
        """End all that runs, side by side and within a second, and start nothing more."""
        self._is_closed = True
        processes = [one for session in self._processes.values() for one in session.values()]
        self._processes.clear()
        await _end_all(processes)

    def _check(self, session: str, name: str) -> None:
        if self._is_closed:
            raise BackgroundRefused("Nothing can be started: the app is ending.")
        running = [one.name for one in self.of(session) if one.is_running]
        if name in running:
            raise BackgroundRefused(f"A process named {name} runs already: stop it first, or choose another name.")
        if len(running) >= RUNNING_AT_MOST:
            raise BackgroundRefused(f"{len(running)} processes run already: stop one of them first.")


async def _end_all(processes: Collection[BackgroundProcess]) -> None:
    """End them, side by side. Cancelling it leaves the ends under way: each has a task of its own."""
    for wish, seconds in ((BackgroundProcess.stop, GRACE_SECONDS + 0.1), (BackgroundProcess.kill, KILL_SECONDS)):
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as group:
                for process in processes:
                    group.start_soon(wish, process)
