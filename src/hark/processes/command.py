"""A command that runs in a process tree of its own, with nobody at its keyboard."""

import os
import subprocess
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from hark.processes.pipe import PipeReader
from hark.processes.subreaper import adopt_orphans
from hark.processes.tree import ProcessTree, StopResult

DRAIN_SECONDS = 0.1


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


class Command:
    """A running command. Whoever made it calls `stop`, however it ends."""

    def __init__(self, process: subprocess.Popen[bytes], tree: ProcessTree, pipe: PipeReader) -> None:
        self._process = process
        self._pipe = pipe
        self.tree = tree

    async def finished(self) -> None:
        """Return when the command has ended by itself and its output is read. Safe to cancel."""
        await self.tree.exited()
        await self.drained()

    async def drained(self) -> None:
        """Return when its output is read. What it left running may hold it open: that is waited for only shortly."""
        await self._pipe.ended(DRAIN_SECONDS)

    def drain(self) -> None:
        """Take what it has printed up to now."""
        self._pipe.drain()

    async def stop(self, grace_seconds: float | None = None) -> StopResult:
        """End all that still runs of it, in less than a second beyond its grace. Cancelling it kills at once."""
        try:
            return await self.tree.stop() if grace_seconds is None else await self.tree.stop(grace_seconds)
        finally:
            self._pipe.close()
            self._process.poll()

    def let_go(self) -> None:
        """Leave it running, never to be stopped from here; another must read what it prints."""
        self._process.returncode = 0  # nobody here waits for it
        os.close(self._pipe.give_up())

    @property
    def output_descriptor(self) -> int:
        """The pipe of what it prints."""
        return self._pipe.descriptor

    @property
    def pid(self) -> int:
        """The pid of its first process."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None before it was stopped, or when it could not be."""
        return self._process.returncode


def start_command(launch: Launch, receive: Callable[[bytes], None]) -> Command:
    """Start a command that carries the cookie; `receive` gets what it prints, errors too.

    Raises:
        OSError, ValueError: The system can't start it.
    """
    ours, theirs = os.pipe()
    try:
        process = _start(launch, theirs)
    except (OSError, ValueError, subprocess.SubprocessError):
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return Command(process, ProcessTree(process.pid, launch.cookie), PipeReader(ours, receive))


def _start(launch: Launch, printed: int) -> subprocess.Popen[bytes]:
    with warnings.catch_warnings():
        # Python warns of code between fork and exec beside threads. This is one call into the system, without a lock.
        warnings.simplefilter("ignore", DeprecationWarning)
        return subprocess.Popen(  # noqa: S603 - running commands is what it is for
            launch.words,
            cwd=launch.folder,
            env=launch.environment,
            stdin=launch.keyboard,
            stdout=printed,
            stderr=printed,
            pass_fds=launch.inherited,
            preexec_fn=adopt_orphans,
            # Its own session: a group that can be ended whole, and no terminal to ask for passwords on.
            start_new_session=True,
        )
