"""How a measurement runs: on which loop, how long, in which process."""

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
OPEN_FILES = 20_000


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked for on the command line."""

    is_quick: bool = False
    has_uvloop: bool = False
    minutes: float = 2.0

    def count(self, full: int) -> int:
        """Return how often to do something."""
        return max(1, full // 10) if self.is_quick else full

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it on a loop of its own, bounded in time."""
        with asyncio.Runner(loop_factory=_uvloop if self.has_uvloop else None) as runner:
            return runner.run(asyncio.wait_for(work, LIMIT_SECONDS))


def in_fresh_process(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Run it where nothing has been allocated, imported or warmed up by another measurement."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments, **named).result()


def raise_file_limit() -> None:
    """Allow many sockets, here and in the processes that are started from here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


def _uvloop() -> asyncio.AbstractEventLoop:
    import uvloop  # type: ignore[import-not-found]  # no dependency: only to find out whether it wins

    return uvloop.new_event_loop()  # type: ignore[no-any-return]
