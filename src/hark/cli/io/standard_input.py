"""Standard input: whole for a prompt, as lines for a chat, as bytes for a protocol, whatever it is connected to."""

import asyncio
import os
import stat
import sys

LONGEST_LINE = 64 * 1024 * 1024


def piped_text() -> str:
    """Return all that is piped in; nothing at a terminal, or when there is no input."""
    if not _is_open() or sys.stdin.isatty():
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace").strip()


def is_terminal() -> bool:
    """Tell whether a person may be typing."""
    return _is_open() and sys.stdin.isatty()


async def line_reader() -> asyncio.StreamReader:
    """Return the lines to come."""
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    await read_input(asyncio.StreamReaderProtocol(reader))
    return reader


async def read_input(protocol: asyncio.Protocol) -> None:
    """Feed standard input to a protocol, whatever it is connected to. A closed one has ended."""
    if not _is_open():
        protocol.eof_received()
        return
    # The loop makes what it reads non-blocking. The terminal's own description is shared with stdout, where a write
    # would then fail on a busy screen, and with the shell; so the terminal is opened once more.
    descriptor = os.open(os.ttyname(0), os.O_RDONLY | os.O_NOCTTY) if os.isatty(0) else os.dup(0)
    source = os.fdopen(descriptor, "rb", buffering=0)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or source.isatty():
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, source)
        return
    with source:  # a file, or /dev/null: no event tells of these, and they never make anyone wait
        protocol.data_received(source.read())
    protocol.eof_received()


def _is_open() -> bool:
    # Python has no stdin when it was started with the descriptor closed, whatever the types say.
    return sys.stdin is not None  # pyright: ignore[reportUnnecessaryComparison]
