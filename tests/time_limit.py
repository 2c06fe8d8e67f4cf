"""A time limit for a test that hangs, in a coroutine or in blocking code.

The limit is a signal in the main thread, so it also ends a blocked event loop and a lock that is never released. When
it expires, an `async def` test is cancelled, so that its cleanup can run. If that does not help, and in other tests, an
exception is raised in the main thread, and again until the test ends.
"""

import asyncio
import faulthandler
import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Coroutine
from types import CoroutineType, FrameType, TracebackType
from typing import Any

import pytest

DEFAULT_SECONDS = 60.0
CLEANUP_PART = 1 / 12  # of the limit: 5 s for the cleanup of a cancelled test, and 5 s after the exception
MAX_BUSY_FACTOR = 3.0
BUSY_LOAD = 2.0  # processes per CPU. `make test` itself stays below.
KILL_SECONDS = 30.0  # after the limit, for code that no signal can interrupt
MAX_TASKS = 30
MAX_FRAMES = 12

_STDERR = os.dup(2)  # pytest captures the original


class TimeLimitExceeded(BaseException):
    """A test exceeded its time limit. Not an `Exception`, which the code under test might catch."""


class TimeLimit:
    """The time limit of one phase of a test. A context manager for the main thread.

    On an overloaded machine the limit grows with the load, up to `MAX_BUSY_FACTOR` times.
    """

    def __init__(self, name: str, seconds: float) -> None:
        self._name = name
        self._seconds = seconds
        self._started = 0.0
        self._task: asyncio.Task[Any] | None = None
        self._message: str | None = None

    def __enter__(self) -> None:
        self._started = time.monotonic()
        signal.signal(signal.SIGALRM, self._expire)
        self._arm(self._seconds * (1 - 2 * CLEANUP_PART))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        if self._message is None:
            return
        if error is not None:  # destroy abandoned tasks now: they log, which Python 3.11 can't do inside `ast.parse`
            traceback.clear_frames(error.__traceback__)
        gc.collect()
        pytest.fail(self._message, pytrace=False)

    async def run(self, test: Coroutine[Any, Any, None]) -> None:
        """Run a test in the current task, which is cancelled when the time is over."""
        self._task = asyncio.current_task()
        try:
            await test
        finally:
            self._task = None

    def _arm(self, seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01), self._seconds * CLEANUP_PART)
        faulthandler.dump_traceback_later(seconds + KILL_SECONDS, exit=True, file=_STDERR)

    def _expire(self, _number: int, _frame: FrameType | None) -> None:
        limit = self._seconds * (1 - 2 * CLEANUP_PART) * busy_factor()
        elapsed = time.monotonic() - self._started
        if self._message is None and elapsed < limit:
            self._arm(limit - elapsed)
            return
        is_first = self._message is None
        if self._message is None:
            self._message = f"{self._name} exceeded its time limit of {self._seconds:g} s\n{stacks()}"
        if is_first and self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)
            return
        raise TimeLimitExceeded(self._message)


def busy_factor() -> float:
    """Return the factor for time limits: 1, or more on an overloaded machine."""
    return min(max(os.getloadavg()[0] / (os.cpu_count() or 1) / BUSY_LOAD, 1.0), MAX_BUSY_FACTOR)


def stacks() -> str:
    """Return the stacks of all threads and of all tasks of the running event loop."""
    report: list[str] = []
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        report += f"--- thread {names.get(ident, ident)}\n", *traceback.format_stack(frame)[-MAX_FRAMES:]
    loop = asyncio._get_running_loop()
    tasks: list[asyncio.Task[Any]] = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name()) if loop else []
    for task in tasks[:MAX_TASKS]:
        report += f"--- task {task.get_name()}\n", *traceback.format_list(_waiting_frames(task)[-MAX_FRAMES:])
    return "".join(report)


def _waiting_frames(task: asyncio.Task[Any]) -> list[traceback.FrameSummary]:
    """Return the frames of a suspended task, from its coroutine to the innermost one that it awaits."""
    frames: list[tuple[FrameType, int]] = []
    coroutine: Any = task.get_coro()
    while isinstance(coroutine, CoroutineType) and (frame := coroutine.cr_frame) is not None:
        frames.append((frame, frame.f_lineno))
        coroutine = coroutine.cr_await
    return list(traceback.StackSummary.extract(iter(frames)))
