"""Abandoned work: it can't be stopped, so it is kept apart, watched, and ended with the app."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from hark.protocol.tool import ToolOutput

CLOSE_SECONDS = 0.1


class Quarantine:
    """Owns the tasks of calls that resisted a cancel."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[ToolOutput]] = set()

    @property
    def names(self) -> list[str]:
        """What is still running, by name."""
        return sorted(task.get_name() for task in self._tasks)

    def keep(self, task: asyncio.Task[ToolOutput], late: Callable[[ToolOutput], None]) -> None:
        """Watch a task; `late` gets its result, should there be one."""
        self._tasks.add(task)

        def ended(task: asyncio.Task[ToolOutput]) -> None:
            self._tasks.discard(task)
            if not task.cancelled() and task.exception() is None:
                late(task.result())

        task.add_done_callback(ended)

    async def close(self) -> None:
        """End what is left, by force if it must be; bounded."""
        tasks = sorted(self._tasks, key=lambda task: task.get_name())
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        for task in tasks:
            if not task.done():
                _close(task)
        await asyncio.wait(tasks, timeout=CLOSE_SECONDS)


def _close(task: asyncio.Task[ToolOutput]) -> None:
    """Break a coroutine off where it waits: the last rung, for work that catches its own cancellation."""
    coroutine = task.get_coro()
    if asyncio.iscoroutine(coroutine):
        # RuntimeError: it caught even this. ValueError: it is running right now.
        with suppress(RuntimeError, ValueError):
            coroutine.close()
    task.cancel()
