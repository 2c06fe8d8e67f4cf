"""An event loop whose time is virtual: waiting costs nothing, and the same seed gives the same run."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Generator
from typing import Any

RESOLUTION_SECONDS = 1e-6  # timers that are due within it run in one pass of the loop, ordered by what is behind it
PASSES_WITHOUT_TIME = 20_000
PASSES = 400_000


class Stuck(Exception):
    """Nothing can go on (a deadlock), or everything goes on and no time passes (a livelock)."""


class NumberedTask(asyncio.Task[Any]):
    """A task that is hashed by its number: sets of tasks have the same order in every process."""

    def __init__(self, coroutine: Generator[Any, None, Any] | Coroutine[Any, Any, Any], **options: Any) -> None:
        self._number = next(options["loop"].numbers)
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self._number


class VirtualLoop(asyncio.BaseEventLoop):
    """asyncio's own loop on a selector that moves the clock instead of waiting."""

    def __init__(self, on_task: Callable[["asyncio.Task[Any]"], None]) -> None:
        """`on_task` is told of each new task, in the context of its maker."""
        super().__init__()
        self.numbers = itertools.count(1)
        self._now = 0.0
        self._passes = 0
        self._passes_now = 0
        self._selector = self  # asked by asyncio's `_run_once`
        self._clock_resolution = RESOLUTION_SECONDS

        def make(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> "asyncio.Task[Any]":
            task = NumberedTask(coroutine, loop=loop, **options)
            on_task(task)
            return task

        self.set_task_factory(make)

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[object]:
        """Stand in for the selector: let time pass until the next timer.

        Raises:
            Stuck: There is no timer and nothing is ready, or time stands still.
        """
        if timeout is None:
            raise Stuck(f"deadlock: nothing can go on; {self.waiting()}")
        self._passes += 1
        self._passes_now = self._passes_now + 1 if timeout == 0 else 0
        if self._passes_now > PASSES_WITHOUT_TIME:
            self._passes_now = 0
            raise Stuck(f"livelock: no time passes; {self.waiting()}")
        if self._passes > PASSES:
            self._passes = 0
            raise Stuck(f"no end: the run goes on and on; {self.waiting()}")
        self._now += timeout
        return []

    def waiting(self) -> str:
        """Name the tasks that wait, and where."""
        lines: list[str] = []
        for task in sorted(asyncio.all_tasks(self), key=hash):
            places = [f"{frame.f_code.co_name}:{frame.f_lineno}" for frame in task.get_stack()]
            lines.append(f"{task.get_name()} at {' > '.join(places)}")
        return "waiting: " + "; ".join(lines)

    def _process_events(self, event_list: list[object]) -> None:
        """There is no network."""

    def _write_to_self(self) -> None:
        """There are no other threads."""
