"""Compaction: older messages are replaced by a summary before the context is full."""

from collections.abc import Awaitable, Callable, Sequence
from typing import assert_never

from msgspec import structs

from hark.engine.turn.reply import ReplyBuilder
from hark.engine.turn.tokens import estimate_tokens, estimate_total_tokens
from hark.engine.turn.transcript import KEPT_USER_MESSAGES
from hark.protocol.messages import AssistantMessage, CallResult, Message, Note, UserMessage
from hark.protocol.provider import ContextTooLong, ProviderError
from hark.text.graphemes import safe_cut

FULL_SHARE = 0.8
KEEP_SHARE = 0.3
MIN_SUMMARISED_SHARE = 0.1
CLIP_CHARACTERS = (2_000, 200)  # characters kept of each old text when even the request for a summary is too long
INSTRUCTIONS = (
    "Summarise the conversation so far for yourself, so that you can continue when the originals are gone. Keep "
    "the user's goals and decisions, finished work, findings, names, paths, figures and error messages that still "
    "matter, open tasks, and interruptions with their reasons. Write plain notes without a preamble, and call no tool."
)

AskModel = Callable[[Sequence[Message]], Awaitable[ReplyBuilder]]


def is_full(used: int, window: int | None) -> bool:
    """Return whether this many tokens nearly fill a context window. An unknown window is never full."""
    return window is not None and used > window * FULL_SHARE


def count_to_summarise(messages: Sequence[Message], keep_tokens: float, min_tokens: float = 0.0) -> int:
    """Return how many of the first messages to summarise, or 0 if fewer than `min_tokens` tokens would be replaced.

    The remaining messages fit into `keep_tokens` tokens, but include at least the last exchange. They begin with a
    user's message or a reply, so that no call is separated from its result.
    """
    used = 0
    count = 0
    for index in range(len(messages) - 1, 0, -1):
        used += estimate_tokens(messages[index])
        if isinstance(messages[index], UserMessage | AssistantMessage):
            if count and used > keep_tokens:
                break
            count = index
    replaced = _replaced_messages(messages[:count])
    return count if replaced and estimate_total_tokens(replaced) >= min_tokens else 0


async def summarise(ask: AskModel, messages: Sequence[Message], instructions: str = "") -> str:
    """Ask the model for a summary. Cancelling changes nothing.

    Raises:
        ProviderError: The model could not summarise.
    """
    reply = await _request_summary(
        ask, messages, f"{INSTRUCTIONS}\n\nThe user adds: {instructions}" if instructions else ""
    )
    summary = reply.text.strip()
    if not summary or (reply.end is not None and reply.end.reason == "refusal"):
        raise ProviderError("The model returned no summary of the conversation.", code="no_summary")
    return summary


async def _request_summary(ask: AskModel, messages: Sequence[Message], instructions: str) -> ReplyBuilder:
    """Ask for a summary of all messages. If the request is too long, retry with shorter and shorter messages."""
    note = Note(instructions or INSTRUCTIONS)
    try:
        return await ask([*messages, note])
    except ContextTooLong as error:
        refusal = error
    for characters in CLIP_CHARACTERS:
        try:
            return await ask([*(_clip(message, characters) for message in messages), note])
        except ContextTooLong as error:
            refusal = error
    raise refusal


def _replaced_messages(messages: Sequence[Message]) -> list[Message]:
    """Return the messages that a summary replaces: all except the user's last messages and the previous summary."""
    user_messages = [place for place, message in enumerate(messages) if isinstance(message, UserMessage)]
    kept = set(user_messages[-KEPT_USER_MESSAGES:])
    is_summary = bool(messages) and isinstance(messages[0], Note)
    return [message for place, message in enumerate(messages) if place not in kept and (place or not is_summary)]


def _clip(message: Message, characters: int) -> Message:
    """Return the message with only the start and end of its text. Calls and results remain."""
    text = message.text
    if len(text) > characters:
        half = characters // 2
        text = f"{text[: safe_cut(text, half)]}\n[...]\n{text[safe_cut(text, len(text) - half) :]}"
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
