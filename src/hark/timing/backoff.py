"""Delays between retries."""

import random


class Backoff:
    """Computes the delay after each failure: twice the previous delay, at most `max_seconds`.

    `jitter` is the largest random fraction added to a delay, so that clients that failed together don't retry
    together.
    """

    def __init__(self, first_seconds: float, max_seconds: float, jitter: float = 0.0) -> None:
        self._first_seconds = first_seconds
        self._max_seconds = max_seconds
        self._jitter = jitter
        self._next_seconds = first_seconds

    def next_delay(self) -> float:
        """Return the number of seconds to wait after another failure."""
        delay, self._next_seconds = self._next_seconds, min(self._next_seconds * 2, self._max_seconds)
        return delay * (1 + self._jitter * random.random())

    def reset(self) -> None:
        """Start again with the first delay, after a success."""
        self._next_seconds = self._first_seconds
