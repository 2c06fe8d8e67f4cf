"""A turn's timeline: spans of model calls, tools and pauses, and the time of the interrupt."""

from collections.abc import Generator
from contextlib import contextmanager

import anyio

from hark.protocol.outcomes import Span, Timings


class Timeline:
    """Measures a turn, starting with the turn's creation, before any setup."""

    def __init__(self) -> None:
        self._start = anyio.current_time()
        self._interrupted: float | None = None
        self._first_chunk: float | None = None
        self._spans: list[Span] = []

    def mark_interrupt(self) -> None:
        """Record the time of the interrupt."""
        self._interrupted = self.elapsed_ms()

    def mark_first_chunk(self) -> None:
        """Record the time of the model's first chunk."""
        if self._first_chunk is None:
            self._first_chunk = self.elapsed_ms()

    @contextmanager
    def span(self, kind: str, name: str) -> Generator[None]:
        """Record the duration of the context as a span, however the context ends."""
        start = self.elapsed_ms()
        try:
            yield
        finally:
            self.add_span(kind, name, start)

    def add_span(self, kind: str, name: str, start: float) -> None:
        """Record a span that ends now."""
        end = self.elapsed_ms()
        settle = 0.0 if self._interrupted is None else max(0.0, end - max(start, self._interrupted))
        self._spans.append(Span(kind, name, round(start, 3), round(end, 3), round(settle, 3)))

    def elapsed_ms(self) -> float:
        """Return the milliseconds since the turn's start."""
        return (anyio.current_time() - self._start) * 1000

    def timings(self) -> Timings:
        """Return the timings up to now."""
        end = self.elapsed_ms()
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
