"""How many replies stream at this moment, and how often each of them is kept."""

from collections.abc import Generator
from contextlib import contextmanager

KEEP_SECONDS = 1.0
KEPT_A_SECOND = 500  # of all together: a thousand streams are each kept every two seconds


class Streams:
    """Counts them, for all sessions of the process."""

    def __init__(self) -> None:
        self._count = 0

    @contextmanager
    def one(self) -> Generator[None]:
        """Count a stream for as long as it lasts."""
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    @property
    def keep_seconds(self) -> float:
        """How long the text of a stream may stay unkept."""
        return max(KEEP_SECONDS, self._count / KEPT_A_SECOND)
