"""Runs commands in a pseudo-terminal."""

import asyncio
import os
import pty
import sys
from collections.abc import Sequence

from tests.cli.command_line import CommandResult, Hark

PIECE_BYTES = 65_536


async def run_in_terminal(
    hark: Hark, *arguments: str, keys: Sequence[tuple[str, str]] = (), **environment: str
) -> CommandResult:
    """Run a command until it exits. `keys` are pairs: a screen text to wait for, and the keys to type then."""
    controller, terminal = pty.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "hark.cli.main",
            *arguments,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=hark.home,
            env={**hark.environment, "TERM": "xterm", **environment},
        )
    finally:
        os.close(terminal)
    screen_text = ""
    remaining_keys = list(keys)
    try:
        while piece := await asyncio.to_thread(_read, controller):
            screen_text += piece
            while remaining_keys and remaining_keys[0][0] in screen_text:
                os.write(controller, remaining_keys.pop(0)[1].encode())
    finally:
        os.close(controller)
    assert not remaining_keys, f"{remaining_keys[0][0]!r} was never on the screen: {screen_text!r}"
    return CommandResult(await process.wait(), screen_text, "")


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, PIECE_BYTES).decode(errors="replace")
    except OSError:  # the other end is closed
        return ""
