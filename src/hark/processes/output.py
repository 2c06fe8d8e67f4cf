"""What a process prints: shown while it runs, and kept at both ends."""

import asyncio
import codecs
from collections.abc import Callable

from hark.processes.output_files import WholeOutput

HEAD_CHARACTERS = 15_000
TAIL_CHARACTERS = 15_000
SHOWN_CHARACTERS = 65_536
BATCH_SECONDS = 0.02


class OutputBuffer:
    """Takes bytes and keeps their text's first and last part; endless output takes no more memory than that.

    With `whole`, which it closes at the end, all of it is in a file.
    """

    def __init__(self, show: Callable[[str], None], whole: WholeOutput | None = None) -> None:
        # Tools print in any encoding; what is not UTF-8 must not end the call.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._live = _Live(show)
        self._whole = whole or WholeOutput(None)
        self._head = ""
        self._tail = ""
        self._total = 0

    def receive(self, piece: bytes) -> None:
        """Take a piece; it may end in the middle of a character."""
        self._whole.add(piece)
        self._add(self._decoder.decode(piece))

    def close(self) -> None:
        """Show what was not shown yet, and where all of it is if that is too long: nothing more comes."""
        self._add(self._decoder.decode(b"", final=True))
        self._whole.close()
        if self._cut and self._whole.note:
            self._live.add_note(self._whole.note)
        self._live.flush()

    @property
    def text(self) -> str:
        """All of it, or its two ends with a line between them that says how much is missing."""
        if not self._cut:
            return self._head + self._tail
        where = f"; {self._whole.note}" if self._whole.note else ""
        return f"{self._head}\n[... {self._cut:,} characters cut here{where} ...]\n{self._tail}"

    @property
    def _cut(self) -> int:
        return self._total - len(self._head) - len(self._tail)

    def _add(self, decoded: str) -> None:
        # NUL is valid text, but terminals, databases and model APIs choke on it.
        text = decoded.replace("\0", "␀")
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
