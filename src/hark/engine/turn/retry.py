"""Asking a model again: only for errors that name themselves as passing, within a budget, and deaf to nothing."""

from collections.abc import Callable

import anyio

from hark.protocol.provider import TransientProviderError

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
RETRIES_PER_TURN = 6
RETRIES_BEFORE_A_SWITCH = 2
LONGEST_WAIT_SECONDS = 120.0
SWITCH_SECONDS = 10.0
STALE = "stale"


class RetryBudget:
    """How often one turn may ask again. A cancellation is no error, so it never enters here."""

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self._in_a_row = 0
        self._stale = 0
        self.used = 0

    def succeeded(self) -> None:
        """A request went well: the next failure starts with a short pause again."""
        self._in_a_row = 0
        self._stale = 0

    def switched(self) -> None:
        """Another route serves: it has its own chance."""
        self._in_a_row = 0
        self._stale = 0

    def next_pause(self, error: TransientProviderError, *, can_switch: bool = False) -> float | None:
        """Return how long to wait before asking the same route again, or None when that is no use.

        A dead connection is asked for once more, no oftener. With another route at hand, nobody waits long.
        """
        wished = error.retry_after or 0.0
        self._stale += error.code == STALE
        is_spent = self.used >= RETRIES_PER_TURN or self._stale > 1 or wished > LONGEST_WAIT_SECONDS
        if is_spent or (can_switch and (self._in_a_row >= RETRIES_BEFORE_A_SWITCH or wished > SWITCH_SECONDS)):
            return None
        self.used += 1
        pause = min(FIRST_PAUSE_SECONDS * 2**self._in_a_row, LONGEST_PAUSE_SECONDS)
        self._in_a_row += 1
        jittered = pause * (0.5 + self._jitter() / 2)
        return jittered if error.retry_after is None else max(jittered, error.retry_after)

    async def pause(self, seconds: float) -> None:
        """Wait; a cancel ends the wait at once."""
        await anyio.sleep(seconds)
