"""How late the event loop is: measured all the time, told for the last minute."""

import asyncio
from collections import deque

from hark.protocol.agent import Lag

PAUSE_SECONDS = 0.1
KEPT = 600  # a minute


class LoopLag:
    """Sleeps for a moment again and again, and notes how much later it woke."""

    def __init__(self) -> None:
        self._late: deque[float] = deque(maxlen=KEPT)

    async def run(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + PAUSE_SECONDS
            await asyncio.sleep(PAUSE_SECONDS)
            self._late.append(max(0.0, loop.time() - due) * 1000)

    def told(self) -> Lag:
        """Return the last minute's, in milliseconds."""
        late = sorted(self._late) or [0.0]
        return Lag(late[len(late) // 2], late[min(len(late) - 1, len(late) * 99 // 100)], late[-1])
