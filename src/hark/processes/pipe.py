"""The ends of pipes to and from a process, used without holding the event loop."""

import asyncio
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio

PIECE_BYTES = 65536
REST_BYTES = 16 * PIECE_BYTES
DRAIN_SECONDS = 0.1


@contextmanager
def inherited(ours: int, theirs: int) -> Generator[None]:
    """Start a process inside that inherits `theirs`, which is closed here then; if that fails, so is `ours`."""
    try:
        yield
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)


class PipeReader:
    """Reads a pipe's end, which it owns from now on, and hands each piece to `receive` from the event loop."""

    def __init__(self, descriptor: int, receive: Callable[[bytes], None]) -> None:
        self.descriptor = descriptor
        self._receive = receive
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    async def ended(self) -> None:
        """Return when nobody holds the other end any more, or after a short while. Safe to cancel."""
        with anyio.move_on_after(DRAIN_SECONDS):
            await self._ended.wait()

    def drain(self) -> None:
        """Take what is in the pipe, without waiting for more."""
        for _ in range(REST_BYTES // PIECE_BYTES):  # bounded: there may be a writer that never stops
            if self._ended.is_set() or not self._read():
                break

    def close(self) -> None:
        """Take what is in the pipe, without waiting for more, and let go of it."""
        self.drain()
        os.close(self.give_up())

    def give_up(self) -> int:
        """Read no more, and return the descriptor: the caller owns it now."""
        self._loop.remove_reader(self.descriptor)
        return self.descriptor

    def _read(self) -> bool:
        """Take one piece, so that the loop has its turn between two; False when there is none now."""
        try:
            piece = os.read(self.descriptor, PIECE_BYTES)
        except BlockingIOError:
            return False
        except ConnectionResetError:  # a socket whose other end went with something unread in it
            piece = b""
        if not piece:
            self._loop.remove_reader(self.descriptor)
            self._ended.set()
            return False
        self._receive(piece)
        return True


class PipeWriter:
    """Writes into a pipe's end, which it owns from now on."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor
        self._turn = anyio.Lock()
        self._ready = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The one that it writes to; none after it was closed."""
        return () if self._descriptor is None else (self._descriptor,)

    async def write(self, whole: bytes) -> int:
        """Write all of it, as fast as the other side reads; return how much was taken. Safe to cancel.

        Less than all is taken when the other side reads no more, or the pipe is closed meanwhile.
        """
        taken = 0
        async with self._turn:
            while taken < len(whole) and self._descriptor is not None:
                try:
                    taken += os.write(self._descriptor, whole[taken : taken + PIECE_BYTES])
                except BlockingIOError:
                    await self._writable(self._descriptor)
                except (BrokenPipeError, ConnectionResetError):
                    break
        return taken

    def close(self) -> None:
        """Let the other side read an end. More than once is once."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            self._loop.remove_writer(descriptor)
            self._ready.set()
            os.close(descriptor)

    async def _writable(self, descriptor: int) -> None:
        self._ready.clear()
        self._loop.add_writer(descriptor, self._ready.set)
        try:
            await self._ready.wait()
        finally:
            if self._descriptor is not None:
                self._loop.remove_writer(descriptor)
