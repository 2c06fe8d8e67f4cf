"""A program controlled over its pipes, and killed together with all its descendants."""

import contextlib
import functools
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import anyio

from hark.processes.cookies import COOKIE_NAME, ProcessOwner, with_cookie
from hark.processes.launcher import Launch, RunningProcess, start_process
from hark.processes.pipe import PipeReader, PipeWriter, pass_to_child
from hark.processes.process_table import read_start_time
from hark.processes.tree import freeze_and_kill

CHUNK_BYTES = 262_144
EXIT_SECONDS = 0.2
GRACE_SECONDS = 0.1
REAP_SECONDS = 0.1


class PipedProcess(RunningProcess):
    """A running program. The code that starts it must call `stop`, even if the program ends on its own."""

    def __init__(
        self, process: subprocess.Popen[bytes], cookie: str, pipe_ends: tuple[int, int], errors: PipeReader
    ) -> None:
        """Take ownership of the pipe ends for standard input and output, and of the reader for standard error."""
        super().__init__(process, cookie)
        self._input = PipeWriter(pipe_ends[0])
        self._output = pipe_ends[1]
        self._errors = errors
        os.set_blocking(self._output, False)

    async def receive(self) -> bytes:
        """Return the next chunk of output, or b"" at the end of the output. Safe to cancel; no output is lost."""
        while True:
            await anyio.wait_readable(self._output)
            with contextlib.suppress(BlockingIOError):
                return os.read(self._output, CHUNK_BYTES)

    async def send(self, data: bytes) -> None:
        """Write all data to the program's input. Cancelling may leave part of it written.

        Raises:
            OSError: The program has closed its input.
        """
        if await self._input.write(data) < len(data):
            raise BrokenPipeError("the program closed its input")

    async def exchange(self, chunks: Iterable[bytes], timeout_seconds: float, max_bytes: int) -> bytes:
        """Send these chunks, read the output until its end, stop the program, and return the output.

        Raises:
            OSError: The program closed its input, or printed more than `max_bytes`.
            TimeoutError: The program took longer than `timeout_seconds`.
        """
        output = bytearray()
        try:
            with anyio.fail_after(timeout_seconds):
                for chunk in chunks:
                    await self.send(chunk)
                while chunk := await self.receive():
                    output += chunk
                    if len(output) > max_bytes:
                        raise OSError("the output is too long")
        finally:
            with anyio.CancelScope(shield=True):  # takes less than a second
                await self.stop()
        return bytes(output)

    async def stop(self) -> Sequence[str]:
        """Stop the program and all its descendants in less than a second. Return the names of survivors.

        Its input is closed first, so that it can exit on its own. Cancelling kills at once. `receive` must not be
        running.
        """
        # Orphaned descendants are only found through the program while it is alive, so list them first.
        before = self.tree.members()
        try:
            self._input.close()
            # A server that reads end of file exits on its own. Allow it some time for a clean exit.
            with anyio.move_on_after(EXIT_SECONDS):
                await self.tree.wait_until_root_exited()
        finally:
            try:
                stopped = await self.tree.stop(GRACE_SECONDS)
                freeze_and_kill(
                    lambda: [process for process in before if read_start_time(process.pid) == process.started]
                )
                with anyio.move_on_after(REAP_SECONDS):  # it was killed, but may not have exited yet
                    await self.tree.wait_until_root_exited()
            finally:
                self._input.close()
                os.close(self._output)
                self._errors.close()
                self._process.poll()
        return [str(process) for process in stopped.left]


Spawn = Callable[[Sequence[str], Path, Mapping[str, str], Callable[[bytes], None]], PipedProcess]


def create_spawner(owner: ProcessOwner) -> Spawn:
    """Return `start_piped` bound to this owner."""
    return functools.partial(start_piped, owner)


def start_piped(
    owner: ProcessOwner,
    argv: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    receive_errors: Callable[[bytes], None],
) -> PipedProcess:
    """Start a program with this environment and a new cookie. `receive_errors` gets its standard error.

    Raises:
        OSError, ValueError: The operating system can't start the program.
    """
    outer = {COOKIE_NAME: os.environ[COOKIE_NAME]} if COOKIE_NAME in os.environ else {}
    cookie = owner.new_cookie()
    (to_read, to_write), (read, written), (errors_read, errors_written) = (os.pipe() for _ in range(3))
    with pass_to_child(to_write, to_read), pass_to_child(read, written), pass_to_child(errors_read, errors_written):
        launch = Launch(argv, folder, with_cookie({**outer, **environment}, cookie), cookie, stdin=to_read)
        process = start_process(launch, written, errors_written)
    return PipedProcess(process, cookie, (to_write, read), PipeReader(errors_read, receive_errors))
