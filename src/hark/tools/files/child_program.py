"""Runs a program for a file tool until it ends, has printed enough or reaches its time limit."""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio

from hark.processes.cookies import ProcessOwner, with_cookie
from hark.processes.launcher import Launch, RunningCommand, wait_for_first
from hark.protocol.tool import ToolError


async def run_program(
    owner: ProcessOwner,
    argv: Sequence[str],
    folder: Path,
    receive: Callable[[bytes], bool],
    seconds: float,
    stdin: int = subprocess.DEVNULL,
) -> bool:
    """Run a program. `receive` gets its output and returns True to stop it. Return whether it timed out.

    Cancelling kills the program.

    Raises:
        ToolError: The program can't be started.
    """
    full = anyio.Event()
    cookie = owner.new_cookie()

    def receive_chunk(chunk: bytes) -> None:
        if receive(chunk):
            full.set()

    try:
        command = RunningCommand(Launch(argv, folder, with_cookie(os.environ, cookie), cookie, stdin), receive_chunk)
    except (OSError, ValueError) as error:
        raise ToolError(f"The program {argv[0]} could not be started: {error}.") from error
    try:
        with anyio.move_on_after(seconds) as limit:
            await wait_for_first(full.wait, command.wait_until_finished)
    finally:
        with anyio.CancelScope(shield=True):  # the stop has its own time limit
            await command.stop(grace_seconds=0.0)
    return limit.cancelled_caught
