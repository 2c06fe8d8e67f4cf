"""Calls that may hang, run aside."""

import asyncio
import threading
import time

import pytest

from hark.tools.web.abandonable_thread import aside
from tests.waiting import at_most


def fail() -> None:
    raise OSError("no")


async def test_what_the_call_returns_or_raises_comes_back() -> None:
    assert await aside(lambda: 7, "seven") == 7
    with pytest.raises(OSError, match="no"):
        await aside(fail, "failure")


async def test_a_call_that_hangs_can_be_left_and_holds_nothing() -> None:
    started, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def hang() -> None:
        loop.call_soon_threadsafe(started.set)
        release.wait(30)

    task = asyncio.create_task(aside(hang, "hanging"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    thread = next(one for one in threading.enumerate() if one.name == "hanging")
    assert thread.daemon
    release.set()


def test_a_loop_that_has_ended_is_not_disturbed() -> None:
    release = threading.Event()
    ended = threading.Event()

    def hang() -> None:
        release.wait(30)
        ended.set()

    async def leave() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(aside(hang, "late"), 0.01)

    before = time.perf_counter()
    asyncio.run(leave())
    assert time.perf_counter() - before < at_most(5)
    release.set()
    assert ended.wait(at_most(5))
