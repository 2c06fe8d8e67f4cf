"""What a process writes into a pipe, read as it comes without holding the event loop."""

import asyncio
import os
from collections.abc import Callable

import anyio

PIECE_BYTES = 65536
REST_BYTES = 16 * PIECE_BYTES


class PipeReader:
    """Reads a pipe's end, which it owns from now on, and hands each piece to `receive` from the event loop."""

    def __init__(self, descriptor: int, receive: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._receive = receive
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    async def ended(self, seconds: float) -> None:
        """Return when nobody holds the other end any more, or after `seconds`. Safe to cancel."""
        with anyio.move_on_after(seconds):
            await self._ended.wait()

    def close(self) -> None:
        """Take what is in the pipe, without waiting for more, and let go of it."""
        for _ in range(REST_BYTES // PIECE_BYTES):  # bounded: there may be a writer that never stops
            if self._ended.is_set() or not self._read():
                break
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _read(self) -> bool:
        """Take one piece, so that the loop has its turn between two; False when there is none now."""
        try:
            piece = os.read(self._descriptor, PIECE_BYTES)
        except BlockingIOError:
            return False
        if not piece:
            self._loop.remove_reader(self._descriptor)
            self._ended.set()
            return False
        self._receive(piece)
        return True
