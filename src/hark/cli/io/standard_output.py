"""Standard output for a protocol: a way out of its own, that no stray word of anyone else can enter."""

import asyncio
import os
import stat
import sys
from contextlib import suppress
from typing import BinaryIO


class FileOut:
    """A file as the way out: it never makes anyone wait."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        """Write at once."""
        self._file.write(data)

    async def drain(self) -> None:
        """There is always room."""

    def close(self) -> None:
        """Let go."""
        self._file.close()

    async def wait_closed(self) -> None:
        """It is let go at once."""


async def own_output() -> asyncio.StreamWriter | FileOut:
    """Take standard output; what others print from now on goes to stderr."""
    descriptor = os.dup(1)
    with suppress(OSError):
        os.dup2(2, 1)
    sys.stdout = sys.stderr
    file = os.fdopen(descriptor, "wb", buffering=0)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return FileOut(file)
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: protocol, file)
    return asyncio.StreamWriter(transport, protocol, None, loop)
