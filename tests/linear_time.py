"""A check that the CPU time of a function grows in proportion to its input.

CPU time is compared, not elapsed time, so that the check holds on a busy machine.
"""

import gc
import time
from collections.abc import Callable
from typing import TypeVar

RATIO_MAX = 2.5  # for an input of twice the size
REPETITIONS = 5
ROUNDS_MAX = 4  # caches and other processes can add time at one size, so a high ratio is measured again at the next
MIN_SECONDS = 0.004  # a shorter run says more about the machine than about the function
GROWTH_MAX = 64

T = TypeVar("T")


def assert_linear(
    make_input: Callable[[int], T],
    run: Callable[[T], object],
    size: int,
    *,
    clock: Callable[[], float] = time.thread_time,
) -> None:
    """Check that `run` takes at most `RATIO_MAX` times as long when the size of its input doubles.

    A size that is too small to measure is increased. A function that is too fast to measure even then has a limit on
    its input, and passes.

    Raises:
        AssertionError: The function takes longer. The message contains the sizes and the times.
    """

    def measure(value: T) -> float:
        start = clock()
        run(value)
        return clock() - start

    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()  # a collection takes time in proportion to all objects of the test process
    try:
        size = _grow_until_measurable(make_input, measure, size) // 2
        small_seconds, large_seconds = float("inf"), float("inf")
        for _ in range(ROUNDS_MAX):
            size *= 2
            small, large = make_input(size), make_input(2 * size)
            small_seconds, large_seconds = float("inf"), float("inf")
            for _ in range(REPETITIONS):
                small_seconds = min(small_seconds, measure(small))
                large_seconds = min(large_seconds, measure(large))
            if large_seconds <= max(small_seconds * RATIO_MAX, MIN_SECONDS):
                return
    finally:
        if was_enabled:
            gc.enable()
    raise AssertionError(
        f"not linear: size {size} took {small_seconds * 1000:.2f} ms of CPU time, size {2 * size} took "
        f"{large_seconds * 1000:.2f} ms. That is {large_seconds / small_seconds:.2f} times as long; "
        f"at most {RATIO_MAX} is allowed."
    )


def _grow_until_measurable(make_input: Callable[[int], T], measure: Callable[[T], float], size: int) -> int:
    largest = size * GROWTH_MAX
    while size < largest and measure(make_input(size)) < MIN_SECONDS:
        size *= 2
    return size
