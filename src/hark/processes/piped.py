"""Starts MCP servers as process trees: found by their cookie, ended whole."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio

from hark.processes.cookies import COOKIE_NAME, Owner, start_time, with_cookie
from hark.processes.kill import freeze_and_kill
from hark.processes.pipe import PipeReader
from hark.processes.subreaper import adopt_orphans
from hark.processes.tree import ProcessTree
from hark.protocol.processes import PipedProcess, Spawn

PIECE_BYTES = 262_144
CLOSED_SECONDS = 0.2
GRACE_SECONDS = 0.1
REAP_SECONDS = 0.1


class TreeProcess:
    """A program with its three pipes, and all that comes of it."""

    def __init__(self, process: subprocess.Popen[bytes], tree: ProcessTree, pipes: "_Pipes") -> None:
        self._process = process
        self._tree = tree
        self._pipes = pipes

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None before `stop` has returned."""
        return self._process.returncode

    async def receive(self) -> bytes:
        """Return what it printed next, b"" when it will print no more."""
        while True:
            await anyio.wait_readable(self._pipes.output)
            with contextlib.suppress(BlockingIOError):
                return os.read(self._pipes.output, PIECE_BYTES)

    async def send(self, piece: bytes) -> None:
        """Return when all of it is in the program's input."""
        rest = memoryview(piece)
        while rest:
            try:
                rest = rest[os.write(self._pipes.input, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._pipes.input)

    async def exited(self) -> None:
        """Return when it has ended."""
        await self._tree.exited()

    async def stop(self) -> Sequence[str]:
        """End it with all that came of it."""
        # What it started and lost is found through it, and only as long as it lives: so it is looked at first.
        before = self._tree.members()
        try:
            self._pipes.close_input()
            # A server that hears the end of its input ends by itself: it is left the time to do so in order.
            with anyio.move_on_after(CLOSED_SECONDS):
                await self._tree.exited()
        finally:
            try:
                stopped = await self._tree.stop(GRACE_SECONDS)
                freeze_and_kill(lambda: [seen for seen in before if start_time(seen.pid) == seen.started])
                with anyio.move_on_after(REAP_SECONDS):  # it does nothing any more, but may still be going down
                    await self._tree.exited()
            finally:
                self._pipes.close()
                self._process.poll()
        return [str(seen) for seen in stopped.left]


class _Pipes:
    """Our ends of a program's pipes. An end is closed once, and nobody may be waiting for it then."""

    def __init__(self, ends: tuple[int, int], errors: PipeReader) -> None:
        self.input, self.output = ends
        self._errors = errors
        self._is_input_open = True
        for end in ends:
            os.set_blocking(end, False)

    def close_input(self) -> None:
        if self._is_input_open:
            self._is_input_open = False
            os.close(self.input)

    def close(self) -> None:
        self.close_input()
        os.close(self.output)
        self._errors.close()


def spawner(owner: Owner) -> Spawn:
    """Return what starts programs that carry a cookie of this owner."""

    def spawn(
        words: Sequence[str], folder: Path, environment: Mapping[str, str], errors: Callable[[bytes], None]
    ) -> PipedProcess:
        outer = {COOKIE_NAME: os.environ[COOKIE_NAME]} if COOKIE_NAME in os.environ else {}
        cookie = owner.new_cookie()
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            (to_read, to_write), (read, written), (errors_read, errors_written) = (os.pipe() for _ in range(3))
            for descriptor in (to_read, written, errors_written):
                theirs.callback(os.close, descriptor)
            for descriptor in (to_write, read, errors_read):
                ours.callback(os.close, descriptor)
            process = subprocess.Popen(  # noqa: S603 - the person's own settings name the program
                words,
                cwd=folder,
                env=with_cookie({**outer, **environment}, cookie),
                stdin=to_read,
                stdout=written,
                stderr=errors_written,
                # Its own session: a group that can be ended whole, and no terminal to ask for passwords on.
                start_new_session=True,
                preexec_fn=adopt_orphans,
            )
            ours.pop_all()
        pipes = _Pipes((to_write, read), PipeReader(errors_read, errors))
        return TreeProcess(process, ProcessTree(process.pid, cookie), pipes)

    return spawn
