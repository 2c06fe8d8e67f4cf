"""A kill that waits for its moment: it falls in the very instant in which the world sees a certain thing happen."""

import asyncio
from collections import Counter
from collections.abc import Callable

SENT = "a message stood in the chat, and that was not answered"
EDITED = "an edit was made, and that was not answered"
HANDED_OUT = "updates were handed out"
ACKED = "an event was acked"
FETCHED = "a file was fetched"
HEARD = "a recording was being heard"
ASKED = "the model was asked"
SAID = "the model had said all"
MOMENTS = (SENT, EDITED, HANDED_OUT, ACKED, FETCHED, HEARD, ASKED, SAID)


class KillPoint:
    """Set for one moment at a time."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._moment = ""
        self._strike: Callable[[], None] | None = None
        self._sprung = asyncio.Event()

    async def set(self, moment: str, strike: Callable[[], None], seconds: float) -> None:
        """Have `strike` called in the next such moment; return then, or when there was none for so long."""
        self._moment, self._strike = moment, strike
        self._sprung.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._sprung.wait()
        except TimeoutError:
            return
        finally:
            self._moment = ""

    def at(self, moment: str) -> None:
        """This happens now."""
        if moment == self._moment and self._strike is not None:
            self._moment = ""
            self._strike()
            self.counts[moment] += 1
            self._sprung.set()
