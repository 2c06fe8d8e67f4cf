"""Detects a turn without events for a long time, and asks the user whether to wait, retry or stop."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from hark.engine.turn.turn_io import TurnIO
from hark.protocol.events import Notice
from hark.protocol.names import child_depth
from hark.protocol.rules import Limits, QuietAction
from hark.protocol.tool import NoUserToAsk, Question

WAIT, RETRY, STOP = "wait", "retry", "stop"
MAX_SLACK_SECONDS = 1.0
SLACK_SHARE = 0.1
RECHECK_SECONDS = 1.0  # while the question is open


@dataclass(frozen=True, slots=True)
class QuietActions:
    """The turn's functions for the timer: the time of the last event, the reason for the wait, and the choices."""

    last_event_at: Callable[[], float]
    describe_wait: Callable[[], str]
    retry: Callable[[], None]
    stop: Callable[[str], object]


class QuietTimer:
    """Watches a turn while its context is entered. It compares times when it fires, so events cost nothing extra.

    A turn that waits for the user's answer is not quiet. After the answer "wait", the next limit is twice as long.
    """

    def __init__(self, io: TurnIO, limits: Limits, actions: QuietActions) -> None:
        self._io = io
        self._actions = actions
        self._unattended = limits.quiet_unattended
        self._seconds = limits.quiet_seconds
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None
        self._asked_at = 0.0
        self._quiet_from = self._loop.time()

    def __enter__(self) -> Self:
        if self._seconds is not None:
            self._schedule(self._limit(self._seconds))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()

    def _limit(self, seconds: float) -> float:
        """Return the limit with some slack. A child asks before its parent, which then waits for that answer."""
        return seconds + min(MAX_SLACK_SECONDS, seconds * SLACK_SHARE) / (1 + child_depth(self._io.session))

    def _schedule(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, self._check)

    def _check(self) -> None:
        assert self._seconds is not None
        now, last = self._loop.time(), self._actions.last_event_at()
        if self._asking is not None:
            if last > self._asked_at:
                self._asking.cancel()  # the turn continued, so the question is withdrawn
            return self._schedule(RECHECK_SECONDS)
        if self._io.questions.is_waiting:
            self._quiet_from = now
        remaining = max(last, self._quiet_from) + self._limit(self._seconds) - now
        if remaining > 0:
            return self._schedule(remaining)
        self._asked_at = now
        self._asking = asyncio.create_task(self._ask(now - max(last, self._quiet_from)), name="quiet turn")
        return self._schedule(RECHECK_SECONDS)

    async def _ask(self, silent_seconds: float) -> None:
        text = f"No activity for {silent_seconds:.0f} s: {self._actions.describe_wait()}."
        try:
            answer = await self._io.questions.ask_aside(Question(f"{text} Wait, retry or stop?", (WAIT, RETRY, STOP)))
        except NoUserToAsk:
            answer = STOP if self._unattended is QuietAction.STOP else WAIT
            self._io.fanout.emit(Notice, self._io.turn, "quiet", text)
        finally:
            self._asking = None
            self._quiet_from = self._loop.time()
        if answer == STOP:
            self._actions.stop("user" if not self._io.questions.is_unattended else "no activity")
        elif answer == RETRY:
            self._actions.retry()
        elif self._seconds is not None:
            self._seconds *= 2
