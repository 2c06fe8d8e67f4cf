"""Event loop lag, measured continuously and reported for the last minute."""

import asyncio
from collections import deque

from hark.protocol.agent import LagStats

SAMPLE_SECONDS = 0.1
MAX_SAMPLES = 600  # one minute


class LoopLag:
    """Measures the event loop lag: sleeps repeatedly for a fixed time and records how late it wakes up."""

    def __init__(self) -> None:
        self._lags_ms: deque[float] = deque(maxlen=MAX_SAMPLES)

    async def run(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + SAMPLE_SECONDS
            await asyncio.sleep(SAMPLE_SECONDS)
            self._lags_ms.append(max(0.0, loop.time() - due) * 1000)

    def summary(self) -> LagStats:
        """Return the median, 99th percentile and maximum of the last minute, in milliseconds."""
        lags = sorted(self._lags_ms) or [0.0]
        return LagStats(lags[len(lags) // 2], lags[min(len(lags) - 1, len(lags) * 99 // 100)], lags[-1])
