"""Runs a benchmark in its own process and event loop, with a time limit."""

import asyncio
import multiprocessing
import resource
from collections.abc import Callable, Coroutine
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LIMIT_SECONDS = 900.0
MAX_OPEN_FILES = 20_000


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """The command-line options of the benchmarks."""

    is_quick: bool = False
    has_uvloop: bool = False
    minutes: float = 2.0

    def scale(self, full: int) -> int:
        """Return the number of repetitions: `full`, or a tenth of it with --quick."""
        return max(1, full // 10) if self.is_quick else full

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in a new event loop, with a time limit."""
        with asyncio.Runner(loop_factory=_make_uvloop if self.has_uvloop else None) as runner:
            return runner.run(asyncio.wait_for(coroutine, LIMIT_SECONDS))


def run_in_new_process(function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
    """Run a function in a new process, so that other benchmarks' allocations, imports and caches can't affect it."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments, **keywords).result()


def raise_file_limit() -> None:
    """Raise the limit on open files for this process and its children."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))


def _make_uvloop() -> asyncio.AbstractEventLoop:
    import uvloop  # type: ignore[import-not-found]  # not a dependency: only used for comparison

    return uvloop.new_event_loop()  # type: ignore[no-any-return]
