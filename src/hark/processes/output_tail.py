"""The last of what a process printed, and how much of it was read."""

import asyncio
import codecs
from collections import deque
from pathlib import Path

from hark.processes.output_files import WholeOutput

KEPT_CHARACTERS = 200_000
SHOWN_CHARACTERS = 30_000


class Unread:
    """Takes bytes; keeps so much of their text, and where the last reading ended. All of it goes into `whole`."""

    def __init__(self, whole: WholeOutput) -> None:
        self._whole = whole
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pieces: deque[str] = deque()
        self._kept = 0
        self._total = 0
        self._read = 0
        self._changed = asyncio.Event()

    def receive(self, piece: bytes) -> None:
        """Take a piece; it may end in the middle of a character."""
        self._whole.add(piece)
        self._add(self._decoder.decode(piece))

    def close(self) -> None:
        """Nothing more comes."""
        self._add(self._decoder.decode(b"", final=True))
        self._whole.close()

    @property
    def count(self) -> int:
        """How many characters were not read yet."""
        return self._total - self._read

    @property
    def path(self) -> Path | None:
        """The file that has all of it, whether it is there yet or not; None when nothing is kept."""
        return self._whole.path

    @property
    def note(self) -> str:
        """Where all of it is; "" when that is nowhere."""
        return self._whole.note

    async def changed(self) -> None:
        """Return when more has come. Safe to cancel."""
        await self._changed.wait()

    def peek(self) -> str:
        """Return what was not read yet, as far as it is kept."""
        unread = min(self.count, self._kept)
        return "".join(self._pieces)[self._kept - unread :]

    def take(self) -> str:
        """Return what was not read yet, and count it as read; of very much only its two ends."""
        text, count = self.peek(), self.count
        self._read = self._total
        if count <= SHOWN_CHARACTERS:
            return text
        half = SHOWN_CHARACTERS // 2
        where = f"; {self._whole.note}" if self._whole.note else ""
        return f"{text[:half]}\n[... {count - 2 * half:,} characters left out{where} ...]\n{text[-half:]}"

    def _add(self, decoded: str) -> None:
        text = decoded.replace("\0", "␀")
        if not text:
            return
        self._pieces.append(text)
        self._kept += len(text)
        self._total += len(text)
        while self._kept - len(self._pieces[0]) >= KEPT_CHARACTERS:
            self._kept -= len(self._pieces.popleft())
        self._changed.set()
        self._changed = asyncio.Event()
