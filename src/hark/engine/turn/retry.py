"""A turn's retry budget: only transient errors are retried, and a cancel ends every pause."""

from collections.abc import Callable

import anyio

from hark.protocol.provider import TransientProviderError

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
RETRIES_PER_TURN = 6
RETRIES_BEFORE_A_SWITCH = 2
MAX_RETRY_AFTER_SECONDS = 120.0
SWITCH_WAIT_SECONDS = 10.0
STALE = "stale"


class RetryBudget:
    """Limits the retries of one turn. A cancellation is not an error and is never retried."""

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self._in_a_row = 0
        self._stale = 0
        self.used = 0

    def record_success(self) -> None:
        """Record a successful request, so that the next failure starts with a short pause."""
        self._in_a_row = 0
        self._stale = 0

    def record_switch(self) -> None:
        """Record a route change, so that the new route gets its own retries."""
        self._in_a_row = 0
        self._stale = 0

    def next_pause(self, error: TransientProviderError, *, can_switch: bool = False) -> float | None:
        """Return the pause in seconds before the same route is retried, or None if it must not be retried.

        A stalled connection is retried only once. If another route is available, long pauses are avoided.
        """
        requested = error.retry_after or 0.0
        self._stale += error.code == STALE
        is_spent = self.used >= RETRIES_PER_TURN or self._stale > 1 or requested > MAX_RETRY_AFTER_SECONDS
        if is_spent or (can_switch and (self._in_a_row >= RETRIES_BEFORE_A_SWITCH or requested > SWITCH_WAIT_SECONDS)):
            return None
        self.used += 1
        pause = min(FIRST_PAUSE_SECONDS * 2**self._in_a_row, LONGEST_PAUSE_SECONDS)
        self._in_a_row += 1
        jittered = pause * (0.5 + self._jitter() / 2)
        return jittered if error.retry_after is None else max(jittered, error.retry_after)

    async def pause(self, seconds: float) -> None:
        """Wait for `seconds`. Cancelling ends the wait immediately."""
        await anyio.sleep(seconds)
