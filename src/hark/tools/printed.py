"""What a process prints: shown while it runs, and kept at both ends."""

import asyncio
import codecs
from collections.abc import Callable

HEAD_CHARACTERS = 15_000
TAIL_CHARACTERS = 15_000
SHOWN_CHARACTERS = 65_536
BATCH_SECONDS = 0.02


class Printed:
    """Takes bytes and keeps their text's first and last part; endless output takes no more memory than that."""

    def __init__(self, show: Callable[[str], None]) -> None:
        # Tools print in any encoding; what is not UTF-8 must not end the call.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._live = _Live(show)
        self._head = ""
        self._tail = ""
        self._total = 0

    def receive(self, piece: bytes) -> None:
        """Take a piece; it may end in the middle of a character."""
        self._add(self._decoder.decode(piece))

    def close(self) -> None:
        """Show what was not shown yet: nothing more comes."""
        self._add(self._decoder.decode(b"", final=True))
        self._live.flush()

    @property
    def text(self) -> str:
        """All of it, or its two ends with a line between them that says how much is missing."""
        cut = self._total - len(self._head) - len(self._tail)
        if not cut:
            return self._head + self._tail
        return f"{self._head}\n[... {cut:,} characters cut here ...]\n{self._tail}"

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
            self._wait(f"\n[output goes on, {self._total:,} characters so far]")
            while self._next_note <= self._total:
                self._next_note *= 2

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
