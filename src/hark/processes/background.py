"""Background processes of each session. They survive an interrupt, but are stopped when the session or app ends."""

import asyncio
import os
import secrets
import signal
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from time import monotonic

import anyio

from hark.disk.private_files import open_private
from hark.processes.cookies import DetachedProcesses, with_cookie
from hark.processes.launcher import Launcher, wait_for_first
from hark.processes.output import UnreadOutput, new_output_file
from hark.processes.pipe import PipeWriter, pass_to_child
from hark.processes.shell import ShellCommand, ShellStates, start_shell
from hark.processes.tree import GRACE_SECONDS, StopResult

MAX_RUNNING = 32
MAX_ENDED = 20
KILL_SECONDS = 0.6


class BackgroundProcess:
    """A command that runs until it exits, is stopped, or is detached. The end of a turn doesn't stop it."""

    def __init__(
        self, name: str, command_text: str, shell: ShellCommand, stdin: PipeWriter, output: UnreadOutput
    ) -> None:
        self.name = name
        self.command_text = command_text
        self.output = output
        self.pid = shell.pid
        self.cookie = shell.tree.cookie
        self.work = f"{name}-{secrets.token_hex(4)}"  # unique in the session
        self.stopped = StopResult()
        self.is_end_read = False  # the model knows that the process has ended
        self._shell = shell
        self._stdin = stdin
        self._started_at = monotonic()
        self._total_seconds: float | None = None
        self._grace_seconds = GRACE_SECONDS
        self._stop_requested = asyncio.Event()
        self._kill_requested = asyncio.Event()
        self._is_detached = False
        self._has_ended = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"background process {name}")

    @property
    def is_running(self) -> bool:
        """Whether any process of the command is alive. False after the command was detached."""
        return not self._has_ended.is_set()

    @property
    def exit_code(self) -> int | None:
        """The exit code, or minus the number of the signal that killed the process. None while running."""
        return None if self.is_running else self._shell.exit_code

    @property
    def was_stopped(self) -> bool:
        """Whether the process was stopped or detached, and did not end on its own."""
        return self._stop_requested.is_set()

    @property
    def elapsed_seconds(self) -> float:
        """The running time of the process in seconds, so far or in total."""
        return monotonic() - self._started_at if self._total_seconds is None else self._total_seconds

    @property
    def status_text(self) -> str:
        """A short description of the command's status, such as `running for 3 s`."""
        code = self.exit_code
        if self._is_detached:
            return "detached"
        if code is None:
            return f"running for {self.elapsed_seconds:.0f} s"
        if code < 0:
            return f"ended by signal {-code} ({signal.strsignal(-code)}) after {self.elapsed_seconds:.1f} s"
        return f"ended with exit code {code} after {self.elapsed_seconds:.1f} s"

    def __str__(self) -> str:
        new = f", {self.output.unread_count:,} unread characters" if self.output.unread_count else ""
        return f"{self.name}: {self.command_text}\n  {self.status_text}, pid {self.pid}{new}"

    async def wait_until_ended(self) -> None:
        """Wait until all processes of the command have ended. Safe to cancel."""
        await self._has_ended.wait()

    async def write(self, text: str, *, close_input: bool = False) -> int:
        """Write to standard input, return the number of bytes written, and close the input if `close_input` is True."""
        written = await self._stdin.write(text.encode(errors="replace"))
        if close_input:
            self._stdin.close()
        return written

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Stop all processes of the command. May be called repeatedly. Cancelling this call doesn't cancel the stop."""
        if not self._stop_requested.is_set():
            self._grace_seconds = grace_seconds
            self._stop_requested.set()
        await self._has_ended.wait()

    async def kill(self) -> None:
        """Kill all processes of the command without a grace period, even if a stop is already in progress."""
        if self._stop_requested.is_set():
            self._kill_requested.set()
        await self.stop(grace_seconds=0)

    def detach(self, file: int, environment: Mapping[str, str]) -> None:
        """Leave the process running permanently. A small helper process appends its output to the file from now on.

        Raises:
            OSError: The helper process can't be started. Nothing has changed in that case.
        """
        output_descriptor = self._shell.output.descriptor
        stdin_descriptors = self._stdin.descriptors  # inherited, or the process would read end of file when Hark exits
        os.set_blocking(output_descriptor, True)
        try:
            writer = subprocess.Popen(  # ends when no process writes to the pipe any more
                ["cat"],  # noqa: S607 - cat is found on the PATH
                stdin=output_descriptor,
                stdout=file,
                stderr=subprocess.DEVNULL,
                env=environment,
                pass_fds=stdin_descriptors,
                start_new_session=True,
            )
        except OSError:
            os.set_blocking(output_descriptor, False)
            raise
        writer.returncode = 0  # not waited for here
        self._is_detached = True
        self._shell.detach()
        self._stop_requested.set()

    async def _run(self) -> None:
        try:
            await wait_for_first(self._shell.wait_until_finished, self._stop_requested.wait)
        finally:
            if not self._is_detached:
                with anyio.CancelScope(shield=True):  # the stop has its own time limit
                    await wait_for_first(self._stop_shell, self._kill_requested.wait)
            self._stdin.close()
            self.output.close()
            self._total_seconds = monotonic() - self._started_at
            self._has_ended.set()

    async def _stop_shell(self) -> None:
        self.stopped = await self._shell.stop(self._grace_seconds)


class BackgroundProcessError(Exception):
    """A request about a background process was refused. The message says why, and what to do."""


class BackgroundProcesses:
    """Starts background processes for sessions. Each starts in the current folder of the session's shell."""

    def __init__(self, launcher: Launcher, states: ShellStates, detached: DetachedProcesses) -> None:
        self._launcher = launcher
        self.states = states
        self._detached = detached
        self._processes: dict[str, dict[str, BackgroundProcess]] = {}
        self._start_count = 0
        self._is_closed = False

    def start(self, session: str, workspace: Path, command_text: str, name: str = "") -> BackgroundProcess:
        """Start a command and return its process. If this raises, nothing was started.

        Raises:
            BackgroundProcessError: The name is in use, too many processes are running, or the app is shutting down.
            OSError, ValueError: The operating system can't start the command.
        """
        self._check_can_start(session, name)
        output = UnreadOutput(new_output_file(self._launcher.outputs_folder, "process", small_bytes=0))
        state, _ = self.states.get_state(session, workspace, self._launcher.environment)
        theirs, ours = os.pipe()
        with pass_to_child(ours, theirs):
            shell = start_shell(self._launcher, command_text, workspace, state, output.receive, theirs)
        self._start_count += 1
        process = BackgroundProcess(name or f"p{self._start_count}", command_text, shell, PipeWriter(ours), output)
        processes = self._processes.setdefault(session, {})
        processes.pop(process.name, None)
        processes[process.name] = process
        ended = [process for process in processes.values() if not process.is_running]
        for oldest in ended[: max(0, len(ended) - MAX_ENDED)]:
            self.remove(session, oldest)
        return process

    def list_processes(self, session: str) -> tuple[BackgroundProcess, ...]:
        """Return a session's processes, including recently ended ones."""
        return tuple(self._processes.get(session, {}).values())

    def get(self, session: str, name: str) -> BackgroundProcess | None:
        """Return the session's process with this name, or None."""
        return self._processes.get(session, {}).get(name)

    def remove(self, session: str, process: BackgroundProcess) -> None:
        """Remove an ended process from the session's list."""
        self._processes.get(session, {}).pop(process.name, None)

    def detach(self, session: str, name: str) -> str:
        """Detach a process at the user's request, so that it outlives session and app. Return a status message.

        Raises:
            BackgroundProcessError: No such process is running, or it can't be detached.
        """
        process = self.get(session, name)
        if process is None or not process.is_running:
            raise BackgroundProcessError(f"No process named {name} is running in this session.")
        path = process.output.file.path
        if path is None:
            raise BackgroundProcessError(f"{name} can't be detached: there is no file for its output.")
        try:
            self._detached.add(process.cookie)
            file = open_private(path, os.O_WRONLY | os.O_APPEND)
            try:
                process.detach(file, with_cookie(self._launcher.environment, process.cookie))
            finally:
                os.close(file)
        except OSError as error:
            raise BackgroundProcessError(f"{name} can't be detached: {error}.") from error
        self.remove(session, process)
        return f"{name} is detached and still running as process {process.pid}; its output is in {path}"

    async def close(self) -> None:
        """Stop all processes of all sessions concurrently, within a second, and refuse to start more."""
        self._is_closed = True
        processes = [process for session in self._processes.values() for process in session.values()]
        self._processes.clear()
        await _stop_all(processes)

    def _check_can_start(self, session: str, name: str) -> None:
        if self._is_closed:
            raise BackgroundProcessError("No process can be started: Hark is shutting down.")
        running = [process.name for process in self.list_processes(session) if process.is_running]
        if name in running:
            raise BackgroundProcessError(
                f"A process named {name} is already running. Stop it first, or choose another name."
            )
        if len(running) >= MAX_RUNNING:
            raise BackgroundProcessError(f"{len(running)} processes are already running. Stop one of them first.")


async def _stop_all(processes: Collection[BackgroundProcess]) -> None:
    """Stop processes concurrently, then kill the remaining ones. Cancelling doesn't cancel stops that have started."""
    for stop, seconds in ((BackgroundProcess.stop, GRACE_SECONDS + 0.1), (BackgroundProcess.kill, KILL_SECONDS)):
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as group:
                for process in processes:
                    group.start_soon(stop, process)
