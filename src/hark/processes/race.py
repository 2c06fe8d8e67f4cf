"""Waits for whichever comes first."""

from collections.abc import Awaitable, Callable

import anyio

Wait = Callable[[], Awaitable[object]]


async def first_of(*waits: Wait) -> None:
    """Return when one of these has returned; the others are cancelled. Safe to cancel."""

    async def one(wait: Wait) -> None:
        await wait()
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for wait in waits:
            group.start_soon(one, wait)
