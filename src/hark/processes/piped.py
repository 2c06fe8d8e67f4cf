"""A program that is talked with over its pipes, and is killed with all that it started."""

import contextlib
import functools
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import anyio

from hark.processes.cookies import COOKIE_NAME, Owner, with_cookie
from hark.processes.pipe import PipeReader, PipeWriter, inherited
from hark.processes.process_table import start_time
from hark.processes.start import Launch, RunningProcess, start_process
from hark.processes.tree import freeze_and_kill

PIECE_BYTES = 262_144
CLOSED_SECONDS = 0.2
GRACE_SECONDS = 0.1
REAP_SECONDS = 0.1


class PipedProcess(RunningProcess):
    """A running program. Whoever had it started calls `stop`, however it ends."""

    def __init__(
        self, process: subprocess.Popen[bytes], cookie: str, ends: tuple[int, int], errors: PipeReader
    ) -> None:
        """Own the ends of its pipes: that of its input, that of its output, and the reader of its errors."""
        super().__init__(process, cookie)
        self._input = PipeWriter(ends[0])
        self._output = ends[1]
        self._errors = errors
        os.set_blocking(self._output, False)

    async def receive(self) -> bytes:
        """Return what it printed next, b"" when it will print no more. Safe to cancel: nothing is lost."""
        while True:
            await anyio.wait_readable(self._output)
            with contextlib.suppress(BlockingIOError):
                return os.read(self._output, PIECE_BYTES)

    async def send(self, piece: bytes) -> None:
        """Return when all of it is in the program's input. Cancelling may leave a part of it there.

        Raises:
            OSError: The program reads no more.
        """
        if await self._input.write(piece) < len(piece):
            raise BrokenPipeError("the program reads no more")

    async def exchange(self, pieces: Iterable[bytes], seconds: float, most_bytes: int) -> bytes:
        """Send these pieces, stop the program when it prints no more, and return what it printed.

        Raises:
            OSError: It reads no more, or prints more than `most_bytes`.
            TimeoutError: It takes longer than `seconds`.
        """
        whole = bytearray()
        try:
            with anyio.fail_after(seconds):
                for piece in pieces:
                    await self.send(piece)
                while piece := await self.receive():
                    whole += piece
                    if len(whole) > most_bytes:
                        raise OSError("its output has no end")
        finally:
            with anyio.CancelScope(shield=True):  # in less than a second
                await self.stop()
        return bytes(whole)

    async def stop(self) -> Sequence[str]:
        """End it with all that came of it, in less than a second; return the names of what could not be ended.

        Its input is closed first, so that it can end by itself. Cancelling it kills at once. Nobody may be receiving.
        """
        # What it started and lost is found through it, and only as long as it lives: so it is looked at first.
        before = self.tree.members()
        try:
            self._input.close()
            # A server that hears the end of its input ends by itself: it is left the time to do so in order.
            with anyio.move_on_after(CLOSED_SECONDS):
                await self.tree.exited()
        finally:
            try:
                stopped = await self.tree.stop(GRACE_SECONDS)
                freeze_and_kill(lambda: [seen for seen in before if start_time(seen.pid) == seen.started])
                with anyio.move_on_after(REAP_SECONDS):  # it does nothing any more, but may still be going down
                    await self.tree.exited()
            finally:
                self._input.close()
                os.close(self._output)
                self._errors.close()
                self._process.poll()
        return [str(seen) for seen in stopped.left]


Spawn = Callable[[Sequence[str], Path, Mapping[str, str], Callable[[bytes], None]], PipedProcess]


def spawner(owner: Owner) -> Spawn:
    """Return `start_piped` for this owner."""
    return functools.partial(start_piped, owner)


def start_piped(
    owner: Owner,
    words: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    errors: Callable[[bytes], None],
) -> PipedProcess:
    """Start a program with this environment and a cookie of the owner; `errors` gets what it prints there.

    Raises:
        OSError, ValueError: The system can't start it.
    """
    outer = {COOKIE_NAME: os.environ[COOKIE_NAME]} if COOKIE_NAME in os.environ else {}
    cookie = owner.new_cookie()
    (to_read, to_write), (read, written), (errors_read, errors_written) = (os.pipe() for _ in range(3))
    with inherited(to_write, to_read), inherited(read, written), inherited(errors_read, errors_written):
        launch = Launch(words, folder, with_cookie({**outer, **environment}, cookie), cookie, keyboard=to_read)
        process = start_process(launch, written, errors_written)
    return PipedProcess(process, cookie, (to_write, read), PipeReader(errors_read, errors))
