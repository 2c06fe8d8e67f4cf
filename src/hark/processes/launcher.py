"""Starts commands, each in its own process tree and without a terminal."""

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

from hark.processes.cookies import ProcessOwner, with_cookie
from hark.processes.pipe import PipeReader, pass_to_child
from hark.processes.sandbox import CommandSandbox, SandboxSettings
from hark.processes.tree import GRACE_SECONDS, ProcessTree, StopResult

# Programs that would wait for input at a terminal fail at once instead, with a message.
NONINTERACTIVE_ENVIRONMENT = {
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
    # Vim would wait for keys on standard error. Commands given with -c have run by then.
    "VIMINIT": "autocmd VimEnter * if !has('ttyin') | cquit | endif",
    "VISUAL": "false",
}
_PR_SET_CHILD_SUBREAPER = 36
MIN_DESCRIPTOR = 100
WaitFunction = Callable[[], Awaitable[object]]


class Launch(Struct, frozen=True):
    """The parameters of a process to start: arguments, folder, environment and cookie.

    `stdin` is the descriptor of its standard input. `inherited_descriptors` are passed besides the standard three.
    `is_sandboxed` means that a sandbox wraps it.
    """

    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    cookie: str
    stdin: int = subprocess.DEVNULL
    inherited_descriptors: tuple[int, ...] = ()
    is_sandboxed: bool = False


class RunningProcess:
    """A process that is the root of its own process tree."""

    def __init__(self, process: subprocess.Popen[bytes], cookie: str) -> None:
        self._process = process
        self.pid = process.pid
        self.tree = ProcessTree(process.pid, cookie)

    @property
    def exit_code(self) -> int | None:
        """The exit code, or minus the number of the fatal signal. None before `stop`, or if the process survived it."""
        return self._process.returncode


class RunningCommand(RunningProcess):
    """A running command. The code that creates it must call `stop`, even if the command ends on its own."""

    def __init__(self, launch: Launch, receive: Callable[[bytes], None]) -> None:
        """Start the command. `receive` gets its standard output and standard error.

        Raises:
            OSError, ValueError: The operating system can't start the command.
        """
        parent_end, child_end = os.pipe()
        with pass_to_child(parent_end, child_end):
            super().__init__(start_process(launch, child_end, child_end), launch.cookie)
        self.output = PipeReader(parent_end, receive)

    async def wait_until_finished(self) -> None:
        """Wait until the command has ended and its output is read. Safe to cancel.

        Leftover processes may keep the output open, so this waits only briefly for the end of the output.
        """
        await self.tree.wait_until_root_exited()
        await self.output.wait_until_ended()

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> StopResult:
        """Stop the remaining processes, within a second after the grace. Cancelling kills them immediately."""
        try:
            return await self.tree.stop(grace_seconds)
        finally:
            self.output.close()
            self._process.poll()

    def detach(self) -> None:
        """Leave the command running. This object no longer stops it, and another process must read its output."""
        self._process.returncode = 0  # not waited for here
        os.close(self.output.release())


def start_process(launch: Launch, output: int, errors: int) -> subprocess.Popen[bytes]:
    """Start a process whose standard output and standard error are these descriptors.

    Raises:
        OSError, ValueError: The operating system can't start the process.
    """
    with warnings.catch_warnings():
        # Python warns about code between fork and exec with threads. This is one system call without a lock.
        warnings.simplefilter("ignore", DeprecationWarning)
        return subprocess.Popen(  # noqa: S603 - running commands is its purpose
            launch.argv,
            cwd=launch.folder,
            env=launch.environment,
            stdin=launch.stdin,
            stdout=output,
            stderr=errors,
            pass_fds=launch.inherited_descriptors,
            preexec_fn=adopt_orphans,
            # A new session gives a group that can be killed as a whole, and no terminal to ask for passwords on.
            start_new_session=True,
        )


class Launcher:
    """Starts commands for `owner`. Their full output is saved in files below `home`, which the sandbox hides."""

    def __init__(
        self,
        owner: ProcessOwner,
        home: Path | None = None,
        sandbox: SandboxSettings | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Create a launcher. Without a home, no output is saved. The environment defaults to this process's own."""
        self.owner = owner
        self.outputs_folder = home / "outputs" if home else None
        hidden = (home,) if home else ()
        self._sandbox = CommandSandbox(
            sandbox or SandboxSettings(), hidden, (self.outputs_folder,) if self.outputs_folder else ()
        )
        self._environment = environment

    @property
    def environment(self) -> dict[str, str]:
        """The default environment of commands: the base environment with non-interactive settings."""
        return {**(os.environ if self._environment is None else self._environment), **NONINTERACTIVE_ENVIRONMENT}

    def prepare(self, argv: Sequence[str], workspace: Path, folder: Path, environment: Mapping[str, str]) -> Launch:
        """Return the parameters to start a command, in the sandbox if there is one, with a new cookie.

        Raises:
            SandboxUnavailable: The settings require a sandbox, but this machine has none.
        """
        cookie = self.owner.new_cookie()
        wrapped = self._sandbox.wrap(argv, workspace)
        return Launch(wrapped, folder, with_cookie(environment, cookie), cookie, is_sandboxed=len(wrapped) > len(argv))


if sys.platform == "linux":
    _prctl = ctypes.CDLL(None).prctl  # loaded before any fork


def adopt_orphans() -> None:
    """Make this process the parent of its orphaned descendants (Linux only)."""
    # The setting survives exec and isn't inherited by fork. While the first process of a call is alive, all orphans
    # are its children. So even a daemon that cleared its environment and left the session is found.
    if sys.platform == "linux":
        _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def create_channel() -> tuple[int, int]:
    """Return two connected descriptors: our end, and a high-numbered end for a child process to inherit."""
    parent_socket, child_socket = socket.socketpair()
    with parent_socket, child_socket:
        child_end = fcntl.fcntl(child_socket, fcntl.F_DUPFD_CLOEXEC, MIN_DESCRIPTOR)
        return parent_socket.detach(), child_end


async def wait_for_first(*wait_functions: WaitFunction) -> None:
    """Run these functions concurrently and return when the first returns. The others are cancelled. Safe to cancel."""

    async def run(wait: WaitFunction) -> None:
        await wait()
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for wait in wait_functions:
            group.start_soon(run, wait)
