"""Making room: what is old becomes a summary, before the context is full."""

from collections.abc import Awaitable, Callable, Sequence
from typing import assert_never

from msgspec import structs

from hark.engine.turn.reply import Reply
from hark.engine.turn.tokens import estimate, tokens
from hark.engine.turn.transcript import KEPT_WORDS
from hark.protocol.messages import AssistantMessage, CallResult, Message, Note, UserMessage
from hark.protocol.provider import ContextTooLong, ProviderError

FULL_SHARE = 0.8
KEPT_SHARE = 0.3
LEAST_SHARE = 0.1
CLIPS = (2_000, 200)  # how much stays of each old text when even the request for a summary is too long
INSTRUCTIONS = (
    "Summarise the conversation so far for yourself, so that you can go on with it when the originals are gone. Keep: "
    "what the person wants and has decided, what was done and found, names, paths, figures and error messages that "
    "still matter, what is open, and what was interrupted and why. Write plain notes, no preamble, and call no tool."
)

Ask = Callable[[Sequence[Message]], Awaitable[Reply]]


def is_full(used: int, window: int | None) -> bool:
    """Tell whether messages of so many tokens come close to a context window; an unknown window is never full."""
    return window is not None and used > window * FULL_SHARE


def split(messages: Sequence[Message], room: float, least: float = 0.0) -> int:
    """Return how many of the first messages to summarise; 0 when less than `least` tokens would go.

    The rest is as much as fits into `room` tokens, but at least the last exchange. It begins with a person's message or
    a reply, so that no call is torn from its result.
    """
    used = 0
    cut = 0
    for place in range(len(messages) - 1, 0, -1):
        used += tokens(messages[place])
        if isinstance(messages[place], UserMessage | AssistantMessage):
            if cut and used > room:
                break
            cut = place
    going = _going(messages[:cut])
    return cut if going and estimate(going) >= least else 0


async def summarise(ask: Ask, messages: Sequence[Message], instructions: str = "") -> tuple[str, Reply]:
    """Return the model's summary, and the reply that it is. Cancelling changes nothing.

    Raises:
        ProviderError: The model could not do it.
    """
    reply = await _asked(ask, messages, f"{INSTRUCTIONS}\n\nThe person adds: {instructions}" if instructions else "")
    summary = reply.text.strip()
    if not summary or (reply.end is not None and reply.end.reason == "refusal"):
        raise ProviderError("The model gave no summary of the conversation.", code="no_summary")
    return summary, reply


async def _asked(ask: Ask, messages: Sequence[Message], words: str) -> Reply:
    """Ask for a summary of all; where that is too long, of less and less of each long text."""
    note = Note(words or INSTRUCTIONS)
    try:
        return await ask([*messages, note])
    except ContextTooLong as error:
        refusal = error
    for characters in CLIPS:
        try:
            return await ask([*(_clipped(message, characters) for message in messages), note])
        except ContextTooLong as error:
            refusal = error
    raise refusal


def _going(messages: Sequence[Message]) -> list[Message]:
    """Return what a summary would take away: not the person's last words, and not the summary before it."""
    words = [place for place, message in enumerate(messages) if isinstance(message, UserMessage)]
    kept = set(words[-KEPT_WORDS:])
    is_summary = bool(messages) and isinstance(messages[0], Note)
    return [message for place, message in enumerate(messages) if place not in kept and (place or not is_summary)]


def _clipped(message: Message, characters: int) -> Message:
    """Return the message with the beginning and the end of its text; calls stay, as their results do."""
    text = message.text
    if len(text) > characters:
        half = characters // 2
        text = f"{text[:half]}\n[...]\n{text[-half:]}"
    match message:
        case UserMessage():
            return structs.replace(message, text=text, attachments=())
        case AssistantMessage():
            calls = tuple(structs.replace(call, arguments="{}") for call in message.calls)
            return structs.replace(message, text=text, calls=calls, reasoning=())
        case CallResult():
            return structs.replace(message, text=text, attachments=())
        case Note():
            return structs.replace(message, text=text)
        case _:
            assert_never(message)
