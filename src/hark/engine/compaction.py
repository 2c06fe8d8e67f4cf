"""Making room: what is old becomes a summary, before the context is full."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import assert_never

from hark.engine.routes import Route
from hark.protocol.messages import AssistantMessage, CallResult, Message, Note, UserMessage
from hark.protocol.provider import ProviderError, Request, TextChunk

CHARACTERS_PER_TOKEN = 3.5
TOKENS_PER_MESSAGE = 8
TOKENS_PER_IMAGE = 1_500
FULL_SHARE = 0.8
KEPT_SHARE = 0.3
INSTRUCTIONS = (
    "Summarise the conversation so far for yourself, so that you can go on with it when the originals are gone. Keep: "
    "what the person wants and has decided, what was done and found, names, paths, figures and error messages that "
    "still matter, what is open, and what was interrupted and why. Write plain notes, no preamble."
)


def estimate(messages: Sequence[Message]) -> int:
    """Return about how many tokens the messages take."""
    return sum(_tokens(message) for message in messages)


def is_full(messages: Sequence[Message], window: int | None) -> bool:
    """Tell whether the messages come close to a context window; an unknown window is never full."""
    return window is not None and estimate(messages) > window * FULL_SHARE


def split(messages: Sequence[Message], window: int | None, *, is_asked: bool = False) -> int:
    """Return how many of the first messages to summarise; 0 when there is nothing to win.

    The rest begins with a person's message or a reply, so that no call is torn from its result. It is as much as fits
    into a share of the window; without a known window, or when a person `is_asked`-for it, the last exchange.
    """
    room = 0.0 if window is None or is_asked else window * KEPT_SHARE
    used = 0
    cut = 0
    for place in range(len(messages) - 1, 0, -1):
        used += _tokens(messages[place])
        if isinstance(messages[place], UserMessage | AssistantMessage):
            if cut and used > room:
                break
            cut = place
    return cut if cut > 1 else 0


async def summarise(route: Route, messages: Sequence[Message], instructions: str = "") -> str:
    """Return the model's summary. Cancelling closes the connection; nothing is changed by trying.

    Raises:
        ProviderError: The model could not do it.
    """
    asked = f"{INSTRUCTIONS}\n\nThe person adds: {instructions}" if instructions else INSTRUCTIONS
    request = Request(system="", messages=[*messages, Note(asked)])
    async with aclosing(route.provider.stream(request)) as chunks:
        texts = [chunk.text async for chunk in chunks if isinstance(chunk, TextChunk)]
    summary = "".join(texts).strip()
    if not summary:
        raise ProviderError("The model gave no summary of the conversation.", code="no_summary")
    return summary


def _tokens(message: Message) -> int:
    match message:
        case UserMessage():
            characters = len(message.text)
            extra = TOKENS_PER_IMAGE * len(message.attachments)
        case AssistantMessage():
            calls = sum(len(call.name) + len(call.arguments) for call in message.calls)
            characters = len(message.text) + calls + sum(len(piece.text) for piece in message.reasoning)
            extra = 0
        case CallResult() | Note():
            characters = len(message.text)
            extra = 0
        case _:
            assert_never(message)
    return TOKENS_PER_MESSAGE + extra + int(characters / CHARACTERS_PER_TOKEN)
