"""Runs a call that may hang, and only looks, in a thread that holds neither a stop nor the exit."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def aside(call: Callable[[], T], name: str) -> T:
    """Return what the call returns, or raise what it raises.

    Cancelling leaves the thread behind: it can't be ended, so nobody waits for it, and nobody hears what it finds.
    """
    found: Future[T] = Future()
    found.set_running_or_notify_cancel()  # so that a cancel leaves it alone

    def look() -> None:
        try:
            found.set_result(call())
        except BaseException as error:  # noqa: BLE001 it is raised where the call is awaited
            found.set_exception(error)

    threading.Thread(target=look, name=name, daemon=True).start()
    return await asyncio.wrap_future(found)
