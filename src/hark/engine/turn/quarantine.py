"""Quarantine: abandoned work that can't be stopped is isolated, watched, and ended with the app."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from hark.protocol.tool import ToolOutput

CLOSE_SECONDS = 0.1


class Quarantine:
    """Owns the tasks of tool calls that did not stop after a cancel."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[ToolOutput]] = set()

    @property
    def names(self) -> list[str]:
        """The names of the tasks that are still running."""
        return sorted(task.get_name() for task in self._tasks)

    def watch(self, task: asyncio.Task[ToolOutput], on_result: Callable[[ToolOutput], None]) -> None:
        """Watch a task. If the task returns a result, `on_result` is called with it."""
        self._tasks.add(task)

        def on_done(task: asyncio.Task[ToolOutput]) -> None:
            self._tasks.discard(task)
            if not task.cancelled() and task.exception() is None:
                on_result(task.result())

        task.add_done_callback(on_done)

    async def close(self) -> None:
        """End the remaining tasks, by force if necessary. Takes a bounded time."""
        tasks = sorted(self._tasks, key=lambda task: task.get_name())
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        for task in tasks:
            if not task.done():
                _close_coroutine(task)
        await asyncio.wait(tasks, timeout=CLOSE_SECONDS)


def _close_coroutine(task: asyncio.Task[ToolOutput]) -> None:
    """Close a coroutine at its current await. The last resort for work that catches its own cancellation."""
    coroutine = task.get_coro()
    if asyncio.iscoroutine(coroutine):
        # RuntimeError: the coroutine caught even this. ValueError: it is running right now.
        with suppress(RuntimeError, ValueError):
            coroutine.close()
    task.cancel()
