"""Delays between retries."""

import random


class Backoff:
    """Returns a delay for each failure: twice the one before, at most `longest`.

    `jitter` is the largest random share that is added to a delay, so that clients which failed together don't retry
    together.
    """

    def __init__(self, first: float, longest: float, jitter: float = 0.0) -> None:
        self._first = first
        self._longest = longest
        self._jitter = jitter
        self._delay = first

    def next_delay(self) -> float:
        """Return the seconds to wait after one more failure."""
        delay, self._delay = self._delay, min(self._delay * 2, self._longest)
        return delay * (1 + self._jitter * random.random())

    def reset(self) -> None:
        """Start again with the first delay, after a success."""
        self._delay = self._first
