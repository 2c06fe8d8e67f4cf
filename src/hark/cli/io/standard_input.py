"""Standard input: whole for a prompt, as lines for a chat, whatever it is connected to."""

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
    if not _is_open():
        reader.feed_eof()
        return reader
    descriptor = sys.stdin.fileno()
    mode = os.fstat(descriptor).st_mode
    if sys.stdin.isatty():
        # The loop makes what it reads non-blocking. The terminal's own description is shared with stdout, where a
        # write would then fail on a busy screen, and with the shell; so the terminal is opened once more.
        source = os.fdopen(os.open(os.ttyname(descriptor), os.O_RDONLY | os.O_NOCTTY), "rb", buffering=0)
    elif stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        source = sys.stdin
    else:  # a file, or /dev/null: no event tells of these, and they never make anyone wait
        reader.feed_data(sys.stdin.buffer.read())
        reader.feed_eof()
        return reader
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    return reader


def _is_open() -> bool:
    # Python has no stdin when it was started with the descriptor closed, whatever the types say.
    return sys.stdin is not None  # pyright: ignore[reportUnnecessaryComparison]
