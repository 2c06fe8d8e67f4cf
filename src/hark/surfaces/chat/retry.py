"""Retries calls to a platform that is temporarily unavailable."""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import TypeVar

import anyio

from hark.protocol.chat import ChatError, ChatGone
from hark.timing.backoff import Backoff

T = TypeVar("T")


MAX_TRIES = 4


async def retry_call(
    call: Callable[[], Awaitable[T]], backoff: Backoff | None = None, max_tries: int | None = MAX_TRIES
) -> T:
    """Return the result of a call, with retries. The platform's wait time takes precedence over the backoff.

    Raises:
        ChatGone: Immediately, because a retry would be refused too.
        ChatError: The last of `max_tries` attempts failed. If `max_tries` is None, retries are unlimited.
    """
    backoff = backoff or Backoff(0.3, 10.0)
    for attempt in count(1):
        try:
            return await call()
        except ChatGone:
            raise
        except ChatError as error:
            if attempt == max_tries:
                raise
            await anyio.sleep(error.retry_after if error.retry_after is not None else backoff.next_delay())
    raise AssertionError("unreachable")
