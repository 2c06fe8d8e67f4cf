"""The virtual event loop: time advances without waiting, and stuck tasks are reported by name."""

import asyncio
from collections.abc import Generator

import pytest

from tests.simulation.loop import LoopStuck, VirtualLoop


@pytest.fixture
def loop() -> Generator[VirtualLoop]:
    loop = VirtualLoop(lambda _: None)
    yield loop
    loop.set_exception_handler(lambda _loop, _context: None)
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.call_later(1, loop.stop)
    loop.run_forever()
    loop.close()


def test_a_long_wait_advances_virtual_time_exactly(loop: VirtualLoop) -> None:
    async def wait() -> None:
        await asyncio.gather(asyncio.sleep(3600), asyncio.sleep(1800))

    loop.run_until_complete(wait())
    assert loop.time() == pytest.approx(3600)


def test_a_deadlock_error_names_the_waiting_tasks(loop: VirtualLoop) -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    task = loop.create_task(wait(), name="a task")
    with pytest.raises(LoopStuck, match=r"deadlock.*a task at wait"):
        loop.run_until_complete(task)


def test_a_livelock_in_which_no_time_passes_is_detected(loop: VirtualLoop) -> None:
    async def spin() -> None:
        while True:  # noqa: ASYNC110 the very thing
            await asyncio.sleep(0)

    with pytest.raises(LoopStuck, match="livelock"):
        loop.run_until_complete(loop.create_task(spin()))
