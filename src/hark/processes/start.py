"""Starts commands, each in a process tree of its own, with nobody at its keyboard."""

import ctypes
import fcntl
import os
import socket
import subprocess
import sys
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import anyio
from msgspec import Struct

from hark.processes.cookies import Owner, with_cookie
from hark.processes.pipe import PipeReader, inherited
from hark.processes.sandbox import Sandbox, Walls
from hark.processes.tree import GRACE_SECONDS, ProcessTree, StopResult

# Whatever would wait for a person at a terminal fails at once instead, and says so.
NOBODY_AT_THE_KEYBOARD = {
    "DEBIAN_FRONTEND": "noninteractive",
    "EDITOR": "false",
    "GIT_ASKPASS": "/bin/false",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "MANPAGER": "cat",
    "PAGER": "cat",
    "PIP_NO_INPUT": "1",
    "SSH_ASKPASS": "/bin/false",
    "SUDO_ASKPASS": "/bin/false",
    "SYSTEMD_PAGER": "cat",
    "TERM": "dumb",
    # Vim would wait for keys on its standard error; commands that were given with -c are done by then.
    "VIMINIT": "autocmd VimEnter * if !has('ttyin') | cquit | endif",
    "VISUAL": "false",
}
_PR_SET_CHILD_SUBREAPER = 36
LOWEST_DESCRIPTOR = 100
Wait = Callable[[], Awaitable[object]]


class Launch(Struct, frozen=True):
    """What is started: its words, where, with which environment and cookie.

    `keyboard` is the descriptor that it reads from, `inherited` are those that it has beyond the first three.
    `is_walled`: a sandbox is around it.
    """

    words: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    cookie: str
    keyboard: int = subprocess.DEVNULL
    inherited: tuple[int, ...] = ()
    is_walled: bool = False


class RunningProcess:
    """A process that leads a tree of its own."""

    def __init__(self, process: subprocess.Popen[bytes], cookie: str) -> None:
        self._process = process
        self.pid = process.pid
        self.tree = ProcessTree(process.pid, cookie)

    @property
    def exit_code(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None before it was stopped, or when it could not be."""
        return self._process.returncode


class Command(RunningProcess):
    """A running command. Whoever made it calls `stop`, however it ends."""

    def __init__(self, launch: Launch, receive: Callable[[bytes], None]) -> None:
        """Start it; `receive` gets what it prints, errors too.

        Raises:
            OSError, ValueError: The system can't start it.
        """
        ours, theirs = os.pipe()
        with inherited(ours, theirs):
            super().__init__(start_process(launch, theirs, theirs), launch.cookie)
        self.output = PipeReader(ours, receive)

    async def finished(self) -> None:
        """Return when the command has ended by itself and its output is read. Safe to cancel.

        What it left running may hold its output open: that is waited for only shortly.
        """
        await self.tree.exited()
        await self.output.ended()

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> StopResult:
        """End all that still runs of it, in less than a second beyond its grace. Cancelling it kills at once."""
        try:
            return await self.tree.stop(grace_seconds)
        finally:
            self.output.close()
            self._process.poll()

    def let_go(self) -> None:
        """Leave it running, never to be stopped from here; another must read what it prints."""
        self._process.returncode = 0  # nobody here waits for it
        os.close(self.output.give_up())


def start_process(launch: Launch, output: int, errors: int) -> subprocess.Popen[bytes]:
    """Start a process that writes into these descriptors.

    Raises:
        OSError, ValueError: The system can't start it.
    """
    with warnings.catch_warnings():
        # Python warns of code between fork and exec beside threads. This is one call into the system, without a lock.
        warnings.simplefilter("ignore", DeprecationWarning)
        return subprocess.Popen(  # noqa: S603 - running commands is what it is for
            launch.words,
            cwd=launch.folder,
            env=launch.environment,
            stdin=launch.keyboard,
            stdout=output,
            stderr=errors,
            pass_fds=launch.inherited,
            preexec_fn=adopt_orphans,
            # Its own session: a group that can be ended whole, and no terminal to ask for passwords on.
            start_new_session=True,
        )


class Launcher:
    """Starts commands as `owner`. What they print goes whole into files below `home`, which the sandbox hides."""

    def __init__(
        self,
        owner: Owner,
        home: Path | None = None,
        sandbox: Sandbox | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Without a home no output is kept whole; without an environment it is that of this process."""
        self.owner = owner
        self.outputs = home / "outputs" if home else None
        hidden = (home,) if home else ()
        self._walls = Walls(sandbox or Sandbox(), hidden, (self.outputs,) if self.outputs else ())
        self._environment = environment

    @property
    def environment(self) -> dict[str, str]:
        """What a command finds in its environment, unless it is told otherwise."""
        return {**(os.environ if self._environment is None else self._environment), **NOBODY_AT_THE_KEYBOARD}

    def launch(self, words: Sequence[str], workspace: Path, folder: Path, environment: Mapping[str, str]) -> Launch:
        """Return what to start: behind walls if there are any, with a cookie of its own.

        Raises:
            SandboxMissing: Walls are required and there are none.
        """
        cookie = self.owner.new_cookie()
        walled = self._walls.around(words, workspace)
        return Launch(walled, folder, with_cookie(environment, cookie), cookie, is_walled=len(walled) > len(words))


if sys.platform == "linux":
    _prctl = ctypes.CDLL(None).prctl  # loaded before any fork


def adopt_orphans() -> None:
    """Have this process become the parent of its descendants that lose theirs; elsewhere than on Linux, do nothing."""
    # Kept over exec and not inherited by fork. So the first process of a call is the parent of all that lost theirs,
    # as long as it lives, and a daemon that cleared its environment and left its session is still seen as its child.
    if sys.platform == "linux":
        _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def high_pair() -> tuple[int, int]:
    """Return the descriptors of a line's two ends: ours, and a high one for the process to inherit."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        high = fcntl.fcntl(theirs, fcntl.F_DUPFD_CLOEXEC, LOWEST_DESCRIPTOR)
        return ours.detach(), high


async def first_of(*waits: Wait) -> None:
    """Return when one of these has returned; the others are cancelled. Safe to cancel."""

    async def one(wait: Wait) -> None:
        await wait()
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for wait in waits:
            group.start_soon(one, wait)
