"""Blocking calls in threads that can be abandoned."""

import asyncio
import threading
import time

import pytest

from hark.tools.web.abandonable_thread import run_abandonable
from tests.waiting import at_most


def fail() -> None:
    raise OSError("no")


async def test_the_result_or_error_of_the_call_is_propagated() -> None:
    assert await run_abandonable(lambda: 7, "seven") == 7
    with pytest.raises(OSError, match="no"):
        await run_abandonable(fail, "failure")


async def test_a_hanging_call_can_be_cancelled_and_its_thread_is_a_daemon() -> None:
    started, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def hang() -> None:
        loop.call_soon_threadsafe(started.set)
        release.wait(30)

    task = asyncio.create_task(run_abandonable(hang, "hanging"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    thread = next(thread for thread in threading.enumerate() if thread.name == "hanging")
    assert thread.daemon
    release.set()


def test_an_abandoned_thread_can_finish_after_the_event_loop_is_closed() -> None:
    release = threading.Event()
    ended = threading.Event()

    def hang() -> None:
        release.wait(30)
        ended.set()

    async def abandon_call() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run_abandonable(hang, "late"), 0.01)

    before = time.perf_counter()
    asyncio.run(abandon_call())
    assert time.perf_counter() - before < at_most(5)
    release.set()
    assert ended.wait(at_most(5))
