"""An event loop with virtual time: waiting takes no real time, and the same seed produces the same run."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Generator
from typing import Any

# timers due within this time run in one pass of the loop, ordered by their sub-microsecond part
RESOLUTION_SECONDS = 1e-6
MAX_PASSES_WITHOUT_TIME = 20_000
MAX_PASSES = 400_000


class LoopStuck(Exception):
    """No task can continue (a deadlock), or tasks run without time passing (a livelock)."""


class NumberedTask(asyncio.Task[Any]):
    """A task that is hashed by its number, so that sets of tasks are iterated in the same order in every process."""

    def __init__(self, coroutine: Generator[Any, None, Any] | Coroutine[Any, Any, Any], **options: Any) -> None:
        self._number = next(options["loop"].numbers)
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self._number


class VirtualLoop(asyncio.BaseEventLoop):
    """asyncio's own event loop with a selector that advances the clock instead of waiting."""

    def __init__(self, on_task: Callable[["asyncio.Task[Any]"], None]) -> None:
        """`on_task` is called with each new task, in the context of the task's creator."""
        super().__init__()
        self.numbers = itertools.count(1)
        self._now = 0.0
        self._passes = 0
        self._passes_now = 0
        self._selector = self  # used by asyncio's `_run_once`
        self._clock_resolution = RESOLUTION_SECONDS

        def create_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> "asyncio.Task[Any]":
            task = NumberedTask(coroutine, loop=loop, **options)
            on_task(task)
            return task

        self.set_task_factory(create_task)

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[object]:
        """Act as the selector: advance the time to the next timer.

        Raises:
            LoopStuck: There is no timer and nothing is ready, or time does not advance.
        """
        if timeout is None:
            raise LoopStuck(f"deadlock: no task can continue; {self.describe_tasks()}")
        self._passes += 1
        self._passes_now = self._passes_now + 1 if timeout == 0 else 0
        if self._passes_now > MAX_PASSES_WITHOUT_TIME:
            self._passes_now = 0
            raise LoopStuck(f"livelock: time does not advance; {self.describe_tasks()}")
        if self._passes > MAX_PASSES:
            self._passes = 0
            raise LoopStuck(f"endless: the run does not end; {self.describe_tasks()}")
        self._now += timeout
        return []

    def describe_tasks(self) -> str:
        """Return the names of the waiting tasks, with the function and line at which each task waits."""
        lines: list[str] = []
        for task in sorted(asyncio.all_tasks(self), key=hash):
            places = [f"{frame.f_code.co_name}:{frame.f_lineno}" for frame in task.get_stack()]
            lines.append(f"{task.get_name()} at {' > '.join(places)}")
        return "waiting: " + "; ".join(lines)

    def _process_events(self, event_list: list[object]) -> None:
        """Do nothing: there is no network."""

    def _write_to_self(self) -> None:
        """Do nothing: there are no other threads."""
