"""Asking a model again: only for errors that name themselves as passing, within a budget, and deaf to nothing."""

from collections.abc import Callable

import anyio

from hark.protocol.provider import TransientProviderError

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
RETRIES_PER_TURN = 6


class RetryBudget:
    """How often one turn may ask again. A cancellation is no error, so it never enters here."""

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self._in_a_row = 0
        self.used = 0

    def succeeded(self) -> None:
        """A request went well: the next failure starts with a short pause again."""
        self._in_a_row = 0

    def next_pause(self, error: TransientProviderError) -> float | None:
        """Return how long to wait before asking again, or None when the budget is spent."""
        if self.used >= RETRIES_PER_TURN:
            return None
        self.used += 1
        pause = min(FIRST_PAUSE_SECONDS * 2**self._in_a_row, LONGEST_PAUSE_SECONDS)
        self._in_a_row += 1
        jittered = pause * (0.5 + self._jitter() / 2)
        return jittered if error.retry_after is None else max(jittered, error.retry_after)

    async def pause(self, seconds: float) -> None:
        """Wait; a cancel ends the wait at once."""
        await anyio.sleep(seconds)
