"""Runs a call that may hang, and only looks, in a thread that holds neither a stop nor the exit."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def aside(call: Callable[[], T], name: str) -> T:
    """Return what the call returns, or raise what it raises.

    Cancelling leaves the thread behind: it can't be ended, so nobody waits for it, and nobody hears what it finds.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[T] = loop.create_future()

    def tell(result: T) -> None:
        if not found.done():
            found.set_result(result)

    def fail(error: BaseException) -> None:
        if not found.done():
            found.set_exception(error)

    def look() -> None:
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 it is raised where the call is awaited
            _post(loop, lambda error=error: fail(error))
        else:
            _post(loop, lambda: tell(result))

    threading.Thread(target=look, name=name, daemon=True).start()
    return await found


def _post(loop: asyncio.AbstractEventLoop, act: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody asks any more
        loop.call_soon_threadsafe(act)
