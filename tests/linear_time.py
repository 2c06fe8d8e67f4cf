"""Checks that a function's CPU time grows linearly with the size of its input."""

import gc
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
RUNS = 5
MAX_GROWTH = 2.5


def assert_linear(make_input: Callable[[int], T], run: Callable[[T], object], size: int) -> None:
    """Fail if an input of twice the size takes more than 2.5 times the CPU time, best of five runs.

    A measurement that fails is repeated twice, because another process can disturb it.
    """
    growth = 0.0
    for _ in range(3):
        growth = _best_time(run, make_input(2 * size)) / max(_best_time(run, make_input(size)), 1e-4)
        if growth <= MAX_GROWTH:
            return
    raise AssertionError(f"An input of twice the size took {growth:.1f} times the CPU time.")


def _best_time(run: Callable[[T], object], argument: T) -> float:
    times: list[float] = []
    for _ in range(RUNS):
        gc.collect()
        start = time.process_time()
        run(argument)
        times.append(time.process_time() - start)
    return min(times)
