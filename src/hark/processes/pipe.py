"""Non-blocking reading and writing of pipes to and from a process."""

import asyncio
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio

CHUNK_BYTES = 16_384  # processing a chunk of hostile output takes up to 30 ms
MAX_DRAIN_BYTES = 1024 * 1024
DRAIN_SECONDS = 0.1


@contextmanager
def pass_to_child(parent_end: int, child_end: int) -> Generator[None]:
    """Context for starting a child process. Closes `child_end` in this process, and `parent_end` if starting fails."""
    try:
        yield
    except BaseException:
        os.close(parent_end)
        raise
    finally:
        os.close(child_end)


class PipeReader:
    """Owns and reads a descriptor, and passes each chunk to `receive` from the event loop."""

    def __init__(self, descriptor: int, receive: Callable[[bytes], None]) -> None:
        self.descriptor = descriptor
        self._receive = receive
        self._has_ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read_chunk)

    async def wait_until_ended(self) -> None:
        """Wait until every writer has closed the pipe, but only for a short time. Safe to cancel."""
        with anyio.move_on_after(DRAIN_SECONDS):
            await self._has_ended.wait()

    def drain(self) -> None:
        """Read the data that is in the pipe now, without waiting for more."""
        for _ in range(MAX_DRAIN_BYTES // CHUNK_BYTES):  # limited, because a writer may never stop
            if self._has_ended.is_set() or not self._read_chunk():
                break

    def close(self) -> None:
        """Read the data that is in the pipe now, without waiting for more, and close the descriptor."""
        self.drain()
        os.close(self.release())

    def release(self) -> int:
        """Stop reading and return the descriptor, which the caller owns now."""
        self._loop.remove_reader(self.descriptor)
        return self.descriptor

    def _read_chunk(self) -> bool:
        """Read one chunk, so that other tasks can run between two chunks. Return False if no data is available."""
        try:
            chunk = os.read(self.descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return False
        except ConnectionResetError:  # a socket whose other end closed with unread data
            chunk = b""
        if not chunk:
            self._loop.remove_reader(self.descriptor)
            self._has_ended.set()
            return False
        self._receive(chunk)
        return True


class PipeWriter:
    """Owns a descriptor and writes to it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor
        self._write_lock = anyio.Lock()
        self._ready = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """A tuple with the descriptor being written to, or an empty tuple after closing."""
        return () if self._descriptor is None else (self._descriptor,)

    async def write(self, data: bytes) -> int:
        """Write the data as fast as the other side reads, and return the number of bytes written. Safe to cancel.

        Fewer bytes are written if the other side stops reading, or the pipe is closed in the meantime.
        """
        written = 0
        async with self._write_lock:
            while written < len(data) and self._descriptor is not None:
                try:
                    written += os.write(self._descriptor, data[written : written + CHUNK_BYTES])
                except BlockingIOError:
                    await self._wait_writable(self._descriptor)
                except (BrokenPipeError, ConnectionResetError):
                    break
        return written

    def close(self) -> None:
        """Close the pipe, so that the other side reads end of file. May be called repeatedly."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            self._loop.remove_writer(descriptor)
            self._ready.set()
            os.close(descriptor)

    async def _wait_writable(self, descriptor: int) -> None:
        self._ready.clear()
        self._loop.add_writer(descriptor, self._ready.set)
        try:
            await self._ready.wait()
        finally:
            if self._descriptor is not None:
                self._loop.remove_writer(descriptor)
