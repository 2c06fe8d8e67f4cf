"""Waiting for conditions in tests, with time limits for busy machines.

A limit detects hangs and wrong conditions. `make bench` measures speed.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import TypeVar, overload

from tests.simulation.loop import VirtualLoop

BUSY_FACTOR = 20
BUSY_EXTRA_SECONDS = 15.0
UNTIL_SECONDS = 40.0  # below the time limit of a test, and ample on a busy machine
POLL_SECONDS = 0.005
MAX_STATE_LENGTH = 4000  # characters


def at_most(seconds: float) -> float:
    """Convert a time limit for an idle machine to a limit for a busy machine."""
    return min(seconds * BUSY_FACTOR, seconds + BUSY_EXTRA_SECONDS)


T = TypeVar("T")
ChangeSignal = asyncio.Event | asyncio.Condition | Callable[[], Awaitable[object]]


@overload
async def until(
    condition: Callable[[], Awaitable[T]],
    *,
    seconds: float = ...,
    shows: Callable[[], object] | None = ...,
    changed: ChangeSignal | None = ...,
) -> T: ...


@overload
async def until(
    condition: Callable[[], T],
    *,
    seconds: float = ...,
    shows: Callable[[], object] | None = ...,
    changed: ChangeSignal | None = ...,
) -> T: ...


async def until(
    condition: Callable[[], object],
    *,
    seconds: float = UNTIL_SECONDS,
    shows: Callable[[], object] | None = None,
    changed: ChangeSignal | None = None,
) -> object:
    """Return the first true value of `condition`, which may be awaitable.

    `changed` signals when to check again: an event, a condition variable, or a function that waits. Without it the
    condition is polled, for other processes and for state without an event.

    Raises:
        AssertionError: The condition was not true in time. The message contains the condition and the last state,
            from `shows`.
    """
    value: object = None
    # A loop on virtual time detects deadlocks itself, and hours pass in an instant.
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
                await _wait_for_change(changed)
    except TimeoutError:
        if not limit.expired():
            raise
    state = repr(value if shows is None else shows())
    raise AssertionError(
        f"not true within {seconds:g} s: {_source_text(condition)}\nlast state: {state[-MAX_STATE_LENGTH:]}"
    )


async def _wait_for_change(changed: ChangeSignal | None) -> None:
    if changed is None:
        await asyncio.sleep(POLL_SECONDS)
    elif isinstance(changed, asyncio.Event):
        changed.clear()
        await changed.wait()
    elif isinstance(changed, asyncio.Condition):
        await changed.wait()
    else:
        await changed()


def _source_text(condition: Callable[[], object]) -> str:
    """Return the source text of the condition."""
    try:
        return inspect.getsource(condition).strip()
    except (OSError, TypeError):  # there is no source, for example for a bound method of an extension
        return repr(condition)
