"""How long a silent model is waited for, and what ends the wait."""

import asyncio
import re
from collections.abc import Callable
from types import TracebackType
from typing import Self

import anyio

from hark.engine.turn.routes import Route

FIRST_BYTE_SECONDS = 120.0
IDLE_SECONDS = 180.0
SECONDS_PER_TOKEN = 60.0 / 50_000
REASONING_FACTOR = 3.0
WARNING_SHARE = 0.6

_REASONING = re.compile(r"(^|[-/])(o[1-9]|r1|qwq)\b|reason|think|gpt-[5-9]|opus", re.IGNORECASE)


def patience(route: Route, tokens: int) -> tuple[float | None, float | None]:
    """Return the limits for the first sign of life and between signs, in seconds; None for no limit.

    The person's own limits always win. A local server may take as long as it needs.
    """
    if route.is_local:
        return route.first_byte_seconds, route.idle_seconds
    factor = REASONING_FACTOR if _REASONING.search(route.model) else 1.0
    extra = tokens * SECONDS_PER_TOKEN
    first = (FIRST_BYTE_SECONDS + extra) * factor if route.first_byte_seconds is None else route.first_byte_seconds
    idle = (IDLE_SECONDS + extra) * factor if route.idle_seconds is None else route.idle_seconds
    return first, idle


class StallTimer:
    """Cancels what it surrounds when there is no sign of life for too long; `is_stale` tells so afterwards.

    A sign of life costs next to nothing: it moves no timer, the timer looks at it.
    """

    def __init__(self, limits: tuple[float | None, float | None], warn: Callable[[float, float], None]) -> None:
        """`warn` is called once per silence, with how long it has been and when it will be cut."""
        first, self._idle = limits
        self._limit = first
        self._warn = warn
        self._loop = asyncio.get_running_loop()
        self._scope = None if limits == (None, None) else anyio.CancelScope()
        self._timer: asyncio.TimerHandle | None = None
        self._last = self._loop.time()
        self._warned_of: float | None = None
        self.is_stale = False

    def alive(self) -> None:
        """A sign of life."""
        self._last = self._loop.time()
        self._limit = self._idle

    def __enter__(self) -> Self:
        if self._scope is not None:
            self._scope.__enter__()
            self._last = self._loop.time()
            self._look()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._timer is not None:
            self._timer.cancel()
        return None if self._scope is None else self._scope.__exit__(kind, error, trace)

    def _look(self) -> None:
        now = self._loop.time()
        limit = self._limit
        if limit is None:
            # The first sign of life may take its time. After it, the other limit counts, if there is one.
            if self._idle is not None:
                self._timer = self._loop.call_at(now + self._idle * WARNING_SHARE, self._look)
            return
        silent = now - self._last
        if silent >= limit and self._scope is not None:
            self.is_stale = True
            self._scope.cancel()
            return
        is_late = silent >= limit * WARNING_SHARE
        if is_late and self._warned_of != self._last:
            self._warned_of = self._last
            self._warn(silent, limit)
        target = limit if is_late else limit * WARNING_SHARE
        self._timer = self._loop.call_at(max(self._last + target, now + 0.001), self._look)
