"""Estimates the number of tokens in messages."""

from collections.abc import Iterable
from typing import assert_never

from hark.protocol.messages import AssistantMessage, CallResult, Message, Note, UserMessage

CHARACTERS_PER_TOKEN = 3.5
TOKENS_PER_MESSAGE = 8
TOKENS_PER_IMAGE = 1_500


def estimate_total_tokens(messages: Iterable[Message]) -> int:
    """Return the estimated number of tokens in the messages."""
    return sum(estimate_tokens(message) for message in messages)


def estimate_tokens(message: Message) -> int:
    """Return the estimated number of tokens in a message."""
    match message:
        case UserMessage():
            characters = len(message.text)
            extra = TOKENS_PER_IMAGE * len(message.attachments)
        case AssistantMessage():
            calls = sum(len(call.name) + len(call.arguments) for call in message.calls)
            characters = len(message.text) + calls + sum(len(piece.text) for piece in message.reasoning)
            extra = 0
        case CallResult():
            characters = len(message.text)
            extra = TOKENS_PER_IMAGE * len(message.attachments)
        case Note():
            characters = len(message.text)
            extra = 0
        case _:
            assert_never(message)
    return TOKENS_PER_MESSAGE + extra + int(characters / CHARACTERS_PER_TOKEN)
