"""What processes print: shown while it runs, bounded in memory, whole in files."""

import asyncio
import codecs
import os
import secrets
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from hark.disk.private_files import open_private, private_folder

# A little less than is shown whole, so that what is cut is always in the file.
SHORT_BYTES = 25_000
LONGEST_BYTES = 100_000_000
KEPT_BYTES = 1_000_000_000
KEPT_FILES = 300
HEAD_CHARACTERS = 15_000
TAIL_CHARACTERS = 15_000
SHOWN_CHARACTERS = 65_536
BATCH_SECONDS = 0.02
KEPT_CHARACTERS = 200_000
READ_CHARACTERS = 30_000


class WholeOutput:
    """Decodes bytes and writes them to `path` once they exceed `short_bytes`. Without a path it keeps nothing.

    A disk that is full must not end a command: then the file has less, and `note` says so.
    """

    def __init__(self, path: Path | None, short_bytes: int = SHORT_BYTES) -> None:
        # Tools print in any encoding; what is not UTF-8 must not end the call.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.path = path
        self._short_bytes = short_bytes
        self._waiting = bytearray()
        self._written = 0
        self._descriptor: int | None = None
        self._problem = ""

    def add(self, piece: bytes) -> str:
        """Take a piece, which may end in the middle of a character; return the text that is complete now."""
        if self.path is not None and not self._problem:
            self._waiting += piece
            if self._descriptor is not None or len(self._waiting) > self._short_bytes:
                self._write(self.path)
        # NUL is valid text, but terminals, databases and model APIs choke on it.
        return self._decoder.decode(piece).replace("\0", "␀")

    def close(self) -> str:
        """Close the file, and return the rest of the text: nothing more comes."""
        self._waiting.clear()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        return self._decoder.decode(b"", final=True)

    @property
    def note(self) -> str:
        """What to say of the file; "" when there is none."""
        if not self._written:
            return f"the output could not be kept in a file: {self._problem}" if self._problem else ""
        if self._problem:
            return f"its first {self._written:,} bytes are in {self.path}: {self._problem}"
        return f"the whole output is in {self.path}"

    def _write(self, path: Path) -> None:
        try:
            if self._descriptor is None:
                private_folder(path.parent)
                _prune(path.parent)
                self._descriptor = open_private(path, os.O_WRONLY | os.O_EXCL | os.O_APPEND)
            room = LONGEST_BYTES - self._written
            self._written += os.write(self._descriptor, self._waiting[:room])
        except OSError as error:
            self._problem = error.strerror or str(error)
        else:
            if len(self._waiting) > room:
                self._problem = f"no more than {LONGEST_BYTES:,} bytes are kept"
        self._waiting.clear()


def new_output(folder: Path | None, name: str, short_bytes: int = SHORT_BYTES) -> WholeOutput:
    """Return a file that is not there yet; `name` is the beginning of its name. Without a folder nothing is written.

    The folder has such files alone, and its owner alone can read it; the oldest go when there are too many.
    """
    if folder is None:
        return WholeOutput(None)
    moment = time.strftime("%Y%m%d-%H%M%S")
    return WholeOutput(folder / f"{name}-{moment}-{secrets.token_hex(3)}.txt", short_bytes)


def _prune(folder: Path) -> None:
    try:
        with os.scandir(folder) as entries:
            found = ((entry.stat(follow_symlinks=False), entry.path) for entry in entries if entry.is_file())
            files = sorted(found, key=lambda one: -one[0].st_mtime)
    except OSError:  # another process prunes as well
        return
    kept_bytes = 0
    for number, (stat, path) in enumerate(files):
        kept_bytes += stat.st_size
        if number >= KEPT_FILES or kept_bytes > KEPT_BYTES:
            Path(path).unlink(missing_ok=True)


def _where(whole: WholeOutput) -> str:
    return f"; {whole.note}" if whole.note else ""


class OutputBuffer:
    """Takes bytes and keeps their text's first and last part; endless output takes no more memory than that.

    With `whole`, which it closes at the end, all of it is in a file.
    """

    def __init__(self, show: Callable[[str], None], whole: WholeOutput | None = None) -> None:
        self._live = _Live(show)
        self._whole = whole or WholeOutput(None)
        self._head = ""
        self._tail = ""
        self._total = 0

    def receive(self, piece: bytes) -> None:
        """Take a piece; it may end in the middle of a character."""
        self._add(self._whole.add(piece))

    def close(self) -> None:
        """Show what was not shown yet, and where all of it is if that is too long: nothing more comes."""
        self._add(self._whole.close())
        if self._cut and self._whole.note:
            self._live.add_note(self._whole.note)
        self._live.flush()

    @property
    def text(self) -> str:
        """All of it, or its two ends with a line between them that says how much is missing."""
        if not self._cut:
            return self._head + self._tail
        return f"{self._head}\n[... {self._cut:,} characters cut here{_where(self._whole)} ...]\n{self._tail}"

    @property
    def _cut(self) -> int:
        return self._total - len(self._head) - len(self._tail)

    def _add(self, text: str) -> None:
        self._live.add(text)
        self._total += len(text)
        room = HEAD_CHARACTERS - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        self._tail = (self._tail + text)[-TAIL_CHARACTERS:]


class _Live:
    """Shows text in batches; of long output only the beginning, and then how long it has become, at each doubling."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._waiting: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._total = 0
        self._next_note = 2 * SHOWN_CHARACTERS

    def add(self, text: str) -> None:
        room = SHOWN_CHARACTERS - self._total
        self._total += len(text)
        if room > 0 and text:
            self._wait(text[:room])
        if self._total >= self._next_note:
            self.add_note(f"output goes on, {self._total:,} characters so far")
            while self._next_note <= self._total:
                self._next_note *= 2

    def add_note(self, note: str) -> None:
        self._wait(f"\n[{note}]")

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            self._show("".join(self._waiting))
            self._waiting.clear()

    def _wait(self, text: str) -> None:
        self._waiting.append(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(BATCH_SECONDS, self.flush)


class Unread:
    """Takes bytes; keeps so much of their text, and where the last reading ended. All of it goes into `whole`."""

    def __init__(self, whole: WholeOutput) -> None:
        self.whole = whole
        self._pieces: deque[str] = deque()
        self._kept = 0
        self._total = 0
        self._read = 0
        self._changed = asyncio.Event()

    def receive(self, piece: bytes) -> None:
        """Take a piece; it may end in the middle of a character."""
        self._add(self.whole.add(piece))

    def close(self) -> None:
        """Nothing more comes."""
        self._add(self.whole.close())

    @property
    def count(self) -> int:
        """How many characters were not read yet."""
        return self._total - self._read

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
        if count <= READ_CHARACTERS:
            return text
        half = READ_CHARACTERS // 2
        return f"{text[:half]}\n[... {count - 2 * half:,} characters left out{_where(self.whole)} ...]\n{text[-half:]}"

    def _add(self, text: str) -> None:
        if not text:
            return
        self._pieces.append(text)
        self._kept += len(text)
        self._total += len(text)
        while self._kept - len(self._pieces[0]) >= KEPT_CHARACTERS:
            self._kept -= len(self._pieces.popleft())
        self._changed.set()
        self._changed = asyncio.Event()
