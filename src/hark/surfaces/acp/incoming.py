"""What the editor sends, line by line, in its order."""

import asyncio
from collections import deque

LONGEST_BYTES = 256 * 1024 * 1024
TOO_LONG = b"a line that is too long"


class Incoming(asyncio.Protocol):
    """Lines of any length that a person may mean, pictures and all. It ends with the input, or by `end`."""

    def __init__(self, *, longest_bytes: int = LONGEST_BYTES) -> None:
        self._longest_bytes = longest_bytes
        self._lines: deque[bytes] = deque()
        self._pieces: list[bytes] = []
        self._size = 0
        self._is_over = False
        self._came: asyncio.Future[None] | None = None

    def data_received(self, data: bytes) -> None:
        """Take what was read, wherever it was cut."""
        *whole, rest = data.split(b"\n")
        for line in whole:
            self._add(line)
            self._finish_line()
        self._add(rest)
        if whole:
            self._wake()

    def eof_received(self) -> None:
        """The input is over; what was not ended by a newline is a line too."""
        self._finish_line()
        self._close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The input is over."""
        self._close()

    def end(self) -> None:
        """Read no further, not even what has come."""
        self._lines.clear()
        self._close()

    async def line(self) -> bytes | None:
        """Return the next line, at once when it is there; None when there will be none. For one reader."""
        while not self._lines:
            if self._is_over:
                return None
            self._came = asyncio.get_running_loop().create_future()
            await self._came
        return self._lines.popleft()

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._longest_bytes:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def _finish_line(self) -> None:
        line = b"".join(self._pieces) if self._size <= self._longest_bytes else TOO_LONG
        self._pieces.clear()
        self._size = 0
        if line.strip() and not self._is_over:
            self._lines.append(line)

    def _close(self) -> None:
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        if self._came is not None and not self._came.done():
            self._came.set_result(None)
