"""Many streams at once: each is read less often, so that all of them together cost no more than a core can give."""

import asyncio
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from hark.protocol.provider import Chunk, TextChunk

FREE_STREAMS = 300  # so many are read as their tokens come
READS_A_SECOND = 2_500  # of the others; what comes between two reads is taken together
LEAST_SECONDS = 0.04
LONGEST_SECONDS = 0.8
TICK_SECONDS = 0.005


class ReadThrottle:
    """How long a stream rests between two reads. A token is then late by that much, and costs a fraction."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._streams = 0
        self._resting: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._is_ticking = False

    @contextmanager
    def stream(self) -> Generator[None]:
        """Count a stream for as long as it lasts."""
        self._change(1)
        try:
            yield
        finally:
            self._change(-1)

    async def rest(self) -> None:
        """Return when it is this stream's turn to be read. One timer serves all: thousands of them would cost more."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._resting.append((loop.time() + self.seconds, turn))
        if not self._is_ticking:
            self._is_ticking = True
            loop.call_later(TICK_SECONDS, self._tick, loop)
        await turn

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wake one stream, then let everyone else have a turn: those that began together would hold all others up."""
        while self._resting and self._resting[0][1].done():  # a stop came
            self._resting.popleft()
        self._is_ticking = bool(self._resting)
        if not self._resting:
            return
        if self._resting[0][0] > loop.time():
            loop.call_later(TICK_SECONDS, self._tick, loop)
            return
        _, turn = self._resting.popleft()
        turn.set_result(None)
        loop.call_soon(self._tick, loop)

    def _change(self, count: int) -> None:
        self._streams += count
        seconds = (self._streams - FREE_STREAMS) / READS_A_SECOND
        self.seconds = min(seconds, LONGEST_SECONDS) if seconds >= LEAST_SECONDS else 0.0


def joined(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks with neighbouring texts put together: what was read together is told together."""
    together: list[Chunk] = []
    texts: list[str] = []
    for chunk in chunks:
        if type(chunk) is TextChunk:
            texts.append(chunk.text)
            continue
        if texts:
            together.append(TextChunk("".join(texts)))
            texts.clear()
        together.append(chunk)
    if texts:
        together.append(TextChunk("".join(texts)))
    return together
