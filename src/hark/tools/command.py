"""A command that runs in a process tree of its own, with nobody at its keyboard."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hark.tools.cookies import with_cookie
from hark.tools.pipe import PipeReader
from hark.tools.process import ProcessTree, Stopped

DRAIN_SECONDS = 0.1


class Command:
    """A running command. Whoever made it calls `stop`, however it ends."""

    def __init__(self, process: subprocess.Popen[bytes], tree: ProcessTree, pipe: PipeReader) -> None:
        self._process = process
        self._tree = tree
        self._pipe = pipe

    async def finished(self) -> None:
        """Return when the command has ended by itself and its output is read. Safe to cancel.

        What it left in the background may hold its output open: that is waited for only shortly.
        """
        await self._tree.exited()
        await self._pipe.ended(DRAIN_SECONDS)

    async def stop(self) -> Stopped:
        """End all that still runs of it, in less than a second. Cancelling it kills at once."""
        try:
            return await self._tree.stop()
        finally:
            self._pipe.close()
            self._process.poll()

    @property
    def exit_code(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None before it was stopped, or when it could not be."""
        return self._process.returncode


def start_command(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], cookie: str, receive: Callable[[bytes], None]
) -> Command:
    """Start a command that carries the cookie; `receive` gets what it prints, errors too.

    Raises:
        OSError, ValueError: The system can't start it.
    """
    ours, theirs = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603 - running commands is what it is for
            words,
            cwd=folder,
            env=with_cookie(environment, cookie),
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            # Its own session: a group that can be ended whole, and no terminal to ask for passwords on.
            start_new_session=True,
        )
    except (OSError, ValueError):
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return Command(process, ProcessTree(process.pid, cookie), PipeReader(ours, receive))
