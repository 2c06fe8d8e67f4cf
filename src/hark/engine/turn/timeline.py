"""Where a turn's time goes: spans of model, tools and pauses, and where the interrupt fell."""

from collections.abc import Generator
from contextlib import contextmanager

import anyio

from hark.protocol.outcomes import Span, Timings


class Timeline:
    """A turn's clock. It starts when the turn is made, before any set-up."""

    def __init__(self) -> None:
        self._start = anyio.current_time()
        self._interrupted: float | None = None
        self._first_chunk: float | None = None
        self._spans: list[Span] = []

    def interrupted(self) -> None:
        """Mark the interrupt."""
        self._interrupted = self.now()

    def chunk(self) -> None:
        """Mark the model's first sign of life."""
        if self._first_chunk is None:
            self._first_chunk = self.now()

    @contextmanager
    def span(self, kind: str, name: str) -> Generator[None]:
        """Measure a stretch, however it ends."""
        start = self.now()
        try:
            yield
        finally:
            self.add(kind, name, start)

    def add(self, kind: str, name: str, start: float) -> None:
        """Note a stretch that ends now."""
        end = self.now()
        settle = 0.0 if self._interrupted is None else max(0.0, end - max(start, self._interrupted))
        self._spans.append(Span(kind, name, round(start, 3), round(end, 3), round(settle, 3)))

    def now(self) -> float:
        """Return milliseconds since the turn's start."""
        return (anyio.current_time() - self._start) * 1000

    def timings(self) -> Timings:
        """Return the account as of now."""
        end = self.now()
        spans = tuple(sorted(self._spans, key=lambda span: span.start))
        return Timings(
            total=round(end, 3),
            model=round(sum(span.end - span.start for span in spans if span.kind == "model"), 3),
            tools=round(sum(span.end - span.start for span in spans if span.kind == "tool"), 3),
            settle=0.0 if self._interrupted is None else round(end - self._interrupted, 3),
            first_chunk=None if self._first_chunk is None else round(self._first_chunk, 3),
            interrupted_at=None if self._interrupted is None else round(self._interrupted, 3),
            spans=spans,
        )
