"""Detects a stalled model stream, and cancels it after a time limit."""

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
WARN_SHARE = 0.6

_REASONING = re.compile(r"(^|[-/])(o[1-9]|r1|qwq)\b|reason|think|gpt-[5-9]|opus", re.IGNORECASE)


def stall_limits(route: Route, tokens: int) -> tuple[float | None, float | None]:
    """Return the time limits in seconds before the first data and between later data; None for no limit.

    The user's own limits take precedence. A local server has no limit by default.
    """
    if route.is_local:
        return route.first_byte_seconds, route.idle_seconds
    factor = REASONING_FACTOR if _REASONING.search(route.model) else 1.0
    extra = tokens * SECONDS_PER_TOKEN
    first = (FIRST_BYTE_SECONDS + extra) * factor if route.first_byte_seconds is None else route.first_byte_seconds
    idle = (IDLE_SECONDS + extra) * factor if route.idle_seconds is None else route.idle_seconds
    return first, idle


class StallTimer:
    """Cancels its context when no data arrives for too long, and sets `is_stale`.

    Recording the arrival of data is nearly free: it only stores the time, which the timer checks later.
    """

    def __init__(self, limits: tuple[float | None, float | None], warn: Callable[[float, float], None]) -> None:
        """`warn` is called once per silence, with the seconds of silence and the limit in seconds."""
        first, self._idle = limits
        self._limit = first
        self._warn = warn
        self._loop = asyncio.get_running_loop()
        self._scope = None if limits == (None, None) else anyio.CancelScope()
        self._timer: asyncio.TimerHandle | None = None
        self._last_data_at = self._loop.time()
        self._warned_at: float | None = None
        self.is_stale = False

    @property
    def last_data_at(self) -> float:
        """The loop time at which the request started or data last arrived."""
        return self._last_data_at

    def record_data(self) -> None:
        """Record that data has arrived."""
        self._last_data_at = self._loop.time()
        self._limit = self._idle

    def __enter__(self) -> Self:
        if self._scope is not None:
            self._scope.__enter__()
            self._last_data_at = self._loop.time()
            self._check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._timer is not None:
            self._timer.cancel()
        return None if self._scope is None else self._scope.__exit__(kind, error, trace)

    def _check(self) -> None:
        now = self._loop.time()
        limit = self._limit
        if limit is None:
            # The first data may take any time. After it, the other limit applies, if there is one.
            if self._idle is not None:
                self._timer = self._loop.call_at(now + self._idle * WARN_SHARE, self._check)
            return
        silent_seconds = now - self._last_data_at
        if silent_seconds >= limit and self._scope is not None:
            self.is_stale = True
            self._scope.cancel()
            return
        is_late = silent_seconds >= limit * WARN_SHARE
        if is_late and self._warned_at != self._last_data_at:
            self._warned_at = self._last_data_at
            self._warn(silent_seconds, limit)
        target = limit if is_late else limit * WARN_SHARE
        self._timer = self._loop.call_at(max(self._last_data_at + target, now + 0.001), self._check)
