"""Triggers a kill when a chosen event happens."""

import asyncio
from collections import Counter
from collections.abc import Callable

SENT = "a message was in the chat, and the request was not answered"
EDITED = "an edit was made, and the request was not answered"
UPDATES_DELIVERED = "updates were delivered"
ACKED = "an event was acked"
FETCHED = "a file was fetched"
TRANSCRIBING = "a recording was being transcribed"
MODEL_REQUESTED = "the model was called"
MODEL_FINISHED = "the model had finished"
MOMENTS = (SENT, EDITED, UPDATES_DELIVERED, ACKED, FETCHED, TRANSCRIBING, MODEL_REQUESTED, MODEL_FINISHED)


class KillPoint:
    """A kill that can be armed for one event at a time."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._moment = ""
        self._kill: Callable[[], None] | None = None
        self._triggered = asyncio.Event()

    async def arm(self, moment: str, kill: Callable[[], None], seconds: float) -> None:
        """Call `kill` at the next event named `moment`. Return after the call, or after `seconds` without the event."""
        self._moment, self._kill = moment, kill
        self._triggered.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._triggered.wait()
        except TimeoutError:
            return
        finally:
            self._moment = ""

    def reach(self, moment: str) -> None:
        """Report that an event is happening now, and call `kill` if it is armed for this event."""
        if moment == self._moment and self._kill is not None:
            self._moment = ""
            self._kill()
            self.counts[moment] += 1
            self._triggered.set()
