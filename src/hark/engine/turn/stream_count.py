"""Counts the replies that are streaming, and sets how often their text is saved."""

from collections.abc import Generator
from contextlib import contextmanager

MIN_SAVE_SECONDS = 1.0
MAX_SAVES_PER_SECOND = 500  # for all streams: with a thousand streams, each is saved every two seconds


class ActiveStreamCounter:
    """Counts the streaming replies of all sessions in this process."""

    def __init__(self) -> None:
        self._count = 0

    @contextmanager
    def count_stream(self) -> Generator[None]:
        """Count a stream while the context is open."""
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    @property
    def save_interval_seconds(self) -> float:
        """The time in seconds between two saves of a stream's text."""
        return max(MIN_SAVE_SECONDS, self._count / MAX_SAVES_PER_SECOND)
