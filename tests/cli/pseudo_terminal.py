"""Commands on a terminal of their own, as a person has it."""

import asyncio
import os
import pty
import sys
from collections.abc import Sequence

from tests.cli.command_line import Ended, Hark

PIECE_BYTES = 65_536


async def run_in_terminal(hark: Hark, *words: str, keys: Sequence[tuple[str, str]] = (), **environment: str) -> Ended:
    """Run a command to its end; `keys` are what to wait for on the screen, and what to type then."""
    ours, theirs = pty.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "hark.cli.main",
            *words,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=hark.home,
            env={**hark.environment, "TERM": "xterm", **environment},
        )
    finally:
        os.close(theirs)
    shown = ""
    left = list(keys)
    try:
        while piece := await asyncio.to_thread(_read, ours):
            shown += piece
            while left and left[0][0] in shown:
                os.write(ours, left.pop(0)[1].encode())
    finally:
        os.close(ours)
    assert not left, f"{left[0][0]!r} was never on the screen: {shown!r}"
    return Ended(await process.wait(), shown, "")


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, PIECE_BYTES).decode(errors="replace")
    except OSError:  # the other side is gone
        return ""
