"""Standard input: as a whole for a prompt, as lines for a chat, or as bytes for a protocol."""

import asyncio
import os
import stat
import sys

MAX_LINE_BYTES = 64 * 1024 * 1024


def read_piped_text() -> str:
    """Return all piped input, or "" if the input is a terminal, closed or empty."""
    if not _is_open() or sys.stdin.isatty():
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace").strip()


def is_terminal() -> bool:
    """Return whether standard input is a terminal, where a user may type."""
    return _is_open() and sys.stdin.isatty()


async def open_line_reader() -> asyncio.StreamReader:
    """Return a stream reader for the lines of standard input."""
    reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    await feed_input(asyncio.StreamReaderProtocol(reader))
    return reader


async def feed_input(protocol: asyncio.Protocol) -> None:
    """Feed standard input to `protocol`, from a terminal, pipe or file. Closed input counts as end of input."""
    if not _is_open():
        protocol.eof_received()
        return
    # The loop makes its input non-blocking. The terminal's file description is shared with stdout, where a write
    # would then fail on a busy screen, and with the shell. So the terminal is opened again.
    descriptor = os.open(os.ttyname(0), os.O_RDONLY | os.O_NOCTTY) if os.isatty(0) else os.dup(0)
    source = os.fdopen(descriptor, "rb", buffering=0)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or source.isatty():
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, source)
        return
    with source:  # a file or /dev/null: the loop can't poll these, and reading them never blocks
        protocol.data_received(source.read())
    protocol.eof_received()


def _is_open() -> bool:
    # Python has no stdin when it was started with the descriptor closed, whatever the types say.
    return sys.stdin is not None  # pyright: ignore[reportUnnecessaryComparison]
