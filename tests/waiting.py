"""Waiting in tests: for a condition, and how long a busy machine may take for it.

A limit finds what hangs or waits for the wrong thing. `make bench` measures how fast the code is.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import TypeVar, overload

from tests.simulation.loop import VirtualLoop

TIMES = 20
MORE_SECONDS = 15.0
UNTIL_SECONDS = 60.0  # a third of what a test may take in all, and much on a busy machine
POLL_SECONDS = 0.005
LONGEST_STATE = 4000  # characters


def at_most(seconds: float) -> float:
    """Return a limit for any machine, when this is one for an idle machine."""
    return min(seconds * TIMES, seconds + MORE_SECONDS)


T = TypeVar("T")
Changed = asyncio.Event | asyncio.Condition | Callable[[], Awaitable[object]]


@overload
async def until(
    condition: Callable[[], Awaitable[T]],
    *,
    seconds: float = ...,
    shows: Callable[[], object] | None = ...,
    changed: Changed | None = ...,
) -> T: ...


@overload
async def until(
    condition: Callable[[], T],
    *,
    seconds: float = ...,
    shows: Callable[[], object] | None = ...,
    changed: Changed | None = ...,
) -> T: ...


async def until(
    condition: Callable[[], object],
    *,
    seconds: float = UNTIL_SECONDS,
    shows: Callable[[], object] | None = None,
    changed: Changed | None = None,
) -> object:
    """Return the first true value of `condition`, which may be awaitable.

    `changed` tells when to look again: an event that is set, a condition variable that is notified, or a function that
    waits. Without it the condition is polled, which is for other processes and for state that has no event.

    Raises:
        AssertionError: It was not true in time. The message has the condition and the last state, from `shows`.
    """
    value: object = None
    # A loop on virtual time finds a deadlock itself, and hours of it pass in an instant.
    is_virtual = isinstance(asyncio.get_running_loop(), VirtualLoop)
    limit = asyncio.timeout(None if is_virtual else seconds)
    lock = changed if isinstance(changed, asyncio.Condition) else nullcontext()
    try:
        async with limit, lock:
            while True:
                value = condition()
                if inspect.isawaitable(value):
                    value = await value
                if value:
                    return value
                await _next_change(changed)
    except TimeoutError:
        if not limit.expired():
            raise
    state = repr(value if shows is None else shows())
    raise AssertionError(f"not true within {seconds:g} s: {_source(condition)}\nlast state: {state[-LONGEST_STATE:]}")


async def _next_change(changed: Changed | None) -> None:
    if changed is None:
        await asyncio.sleep(POLL_SECONDS)
    elif isinstance(changed, asyncio.Event):
        changed.clear()
        await changed.wait()
    elif isinstance(changed, asyncio.Condition):
        await changed.wait()
    else:
        await changed()


def _source(condition: Callable[[], object]) -> str:
    """Return the condition as it is written in the test."""
    try:
        return inspect.getsource(condition).strip()
    except (OSError, TypeError):  # it has no source: a bound method of an extension, for example
        return repr(condition)
