"""Runs a blocking call in a thread that can be abandoned, so that it delays neither a stop nor the exit."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def run_abandonable(call: Callable[[], T], name: str) -> T:
    """Run a call without side effects in a thread, and return its result or raise its error.

    Cancelling abandons the thread, because a thread can't be stopped. The call's result is then discarded.
    """
    result: Future[T] = Future()
    result.set_running_or_notify_cancel()  # so that cancelling the awaiting task doesn't cancel the future

    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as error:  # noqa: BLE001 it is raised where the call is awaited
            result.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(result)
