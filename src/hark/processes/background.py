"""The processes in the background, by session: they outlive an interrupt, but neither their session nor the app."""

import os
from collections.abc import Collection
from pathlib import Path

import anyio

from hark.processes.background_process import BackgroundProcess
from hark.processes.cookies import with_cookie
from hark.processes.detached import Detached
from hark.processes.launcher import Launcher
from hark.processes.output_tail import Unread
from hark.processes.pipe import PipeWriter
from hark.processes.shell_command import ShellCommand, start_shell
from hark.processes.shell_state import ShellStates
from hark.processes.tree import GRACE_SECONDS

RUNNING_AT_MOST = 32
ENDED_AT_MOST = 20
KILL_SECONDS = 0.6


class BackgroundRefused(Exception):
    """It can't be done; the text says why, and what to do."""


class Background:
    """Starts processes, each of which belongs to a session. They begin in the folder of the session's shell."""

    def __init__(self, launcher: Launcher, states: ShellStates, detached: Detached) -> None:
        self._launcher = launcher
        self._states = states
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
        output = Unread(self._launcher.outputs.new("process", short_bytes=0))
        state, _ = self._states.of(session, workspace, self._launcher.environment)
        theirs, ours = os.pipe()
        try:
            shell = start_shell(self._launcher, text, workspace, state, output.receive, theirs)
        except (OSError, ValueError):
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return self._keep(session, name, text, shell, PipeWriter(ours), output)

    def of(self, session: str) -> tuple[BackgroundProcess, ...]:
        """Return a session's processes, the ones that ended not long ago too."""
        return tuple(self._processes.get(session, {}).values())

    def folder(self, session: str) -> Path | None:
        """Return where a session's next process would start; None for the workspace."""
        return self._states.folder(session)

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
        if process.output.path is None:
            raise BackgroundRefused(f"{name} can't be detached: there is no file for what it prints.")
        try:
            process.output.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._detached.note(process.cookie)
            file = os.open(process.output.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                process.let_go(file, with_cookie(self._launcher.environment, process.cookie))
            finally:
                os.close(file)
        except OSError as error:
            raise BackgroundRefused(f"{name} can't be detached: {error}.") from error
        self.forget(session, process)
        return f"{name} is detached and runs on as process {process.pid}; its output is in {process.output.path}"

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

    def _keep(
        self, session: str, name: str, text: str, shell: ShellCommand, keyboard: PipeWriter, output: Unread
    ) -> BackgroundProcess:
        self._names += 1
        process = BackgroundProcess(name or f"p{self._names}", text, shell, keyboard, output)
        kept = self._processes.setdefault(session, {})
        kept.pop(process.name, None)
        kept[process.name] = process
        ended = [one for one in kept.values() if not one.is_running]
        for one in ended[: max(0, len(ended) - ENDED_AT_MOST)]:
            self.forget(session, one)
        return process


async def _end_all(processes: Collection[BackgroundProcess]) -> None:
    """End them, side by side. Cancelling it leaves the ends under way: each has a task of its own."""
    for wish, seconds in ((BackgroundProcess.stop, GRACE_SECONDS + 0.1), (BackgroundProcess.kill, KILL_SECONDS)):
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as group:
                for process in processes:
                    group.start_soon(wish, process)
