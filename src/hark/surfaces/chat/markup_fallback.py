"""Send a message with markup, or as plain text if the markup can't be rendered or the platform refuses it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from hark.protocol.chat import ChatGone

F = TypeVar("F")
T = TypeVar("T")

LOG = logging.getLogger(__name__)
# Rendering can take longer than the event loop may be blocked. More threads would only compete with the loop.
_RENDERER = ThreadPoolExecutor(1, "markup")


class MarkupRefused(ChatGone):
    """The platform refused the form of a message. A plainer form may be accepted."""


async def send_with_fallback(forms: Sequence[Callable[[], F | None]], send: Callable[[F], Awaitable[T]]) -> T:
    """Send the first form of a message that can be rendered and that the platform accepts.

    `forms` are functions without side effects, the plainest form last. None means that a form does not fit.

    Raises:
        ChatGone: No form was accepted. The message must be dropped, because it would block later messages.
    """
    refusal = ChatGone("The message can't be rendered in any form.")
    for render in forms:
        try:
            form = await asyncio.get_running_loop().run_in_executor(_RENDERER, render)
        except Exception:  # the markup boundary: text without markup is better than none
            LOG.exception("A message could not be rendered and is sent in a plainer form.")
            continue
        if form is None:
            continue
        try:
            return await send(form)
        except MarkupRefused as error:
            LOG.info("The form of a message was refused: %s", error)
            refusal = error
    LOG.warning("A message was refused in every form: %s", refusal)
    raise refusal
