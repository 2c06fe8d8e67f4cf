"""A measurement of how long the event loop is blocked, in CPU time, so that it holds on a busy machine."""

import asyncio
import gc
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

MAX_LAG_SECONDS = 0.05


@dataclass
class LoopLag:
    """The CPU time of the longest iteration of the event loop so far."""

    seconds: float = 0.0


@contextmanager
def measured_loop_lag() -> Generator[LoopLag]:
    """Measure each iteration of the running event loop in this block. Garbage collections don't count."""
    lag = LoopLag()
    loop = cast("Any", asyncio.get_running_loop())
    run_once = loop._run_once

    def run_and_measure() -> None:
        began = time.thread_time()
        run_once()
        lag.seconds = max(lag.seconds, time.thread_time() - began)

    gc.collect()
    gc.disable()
    loop._run_once = run_and_measure
    try:
        yield lag
    finally:
        del loop._run_once
        gc.enable()
