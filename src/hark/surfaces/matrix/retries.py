"""Asking again, a few times, when the homeserver can't answer now."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from hark.protocol.chat import ChatError, ChatGone

T = TypeVar("T")

TRIES = 4
PAUSE_SECONDS = 0.3
LONGEST_PAUSE_SECONDS = 10.0


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """Return what it returns.

    Raises:
        ChatError: It still fails after some tries.
        ChatGone: At once: trying again is of no use.
    """
    for tried in range(TRIES):
        try:
            return await ask()
        except ChatGone:
            raise
        except ChatError as error:
            if tried == TRIES - 1:
                raise
            pause = error.retry_after if error.retry_after is not None else PAUSE_SECONDS * 2**tried
            await anyio.sleep(min(pause, LONGEST_PAUSE_SECONDS))
    raise AssertionError("unreachable")
