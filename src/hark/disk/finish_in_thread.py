"""Runs blocking code in a thread to its end, whatever cancels the caller."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from anyio import CancelScope, to_thread

T = TypeVar("T")


async def finish_in_thread(work: Callable[[], T]) -> T:
    """Run a function in a thread and return its result. Cancelling has no effect once the function has been started.

    So a change of files is never made after its caller has ended, and never overtaken by a later one.
    """
    task = asyncio.create_task(to_thread.run_sync(work))
    with CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                continue  # the function can't be stopped
    return task.result()
