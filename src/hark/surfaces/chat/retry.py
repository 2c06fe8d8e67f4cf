"""Calls to a platform that are repeated when it can't answer now."""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import TypeVar

import anyio

from hark.protocol.chat import ChatError, ChatGone
from hark.timing.backoff import Backoff

T = TypeVar("T")


TRIES = 4


async def retried(call: Callable[[], Awaitable[T]], backoff: Backoff | None = None, tries: int | None = TRIES) -> T:
    """Return the result of a call. Between tries wait as long as the platform asks, otherwise as the backoff says.

    Raises:
        ChatGone: At once. Another try would be refused, too.
        ChatError: The last of `tries` has failed. None tries forever.
    """
    backoff = backoff or Backoff(0.3, 10.0)
    for tried in count(1):
        try:
            return await call()
        except ChatGone:
            raise
        except ChatError as error:
            if tried == tries:
                raise
            await anyio.sleep(error.retry_after if error.retry_after is not None else backoff.next_delay())
    raise AssertionError("unreachable")
