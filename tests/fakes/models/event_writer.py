"""Whoever words chunks in the events of one API."""

from collections.abc import Iterable
from typing import Any, Protocol

from hark.protocol.provider import Chunk
from tests.fakes.models.anthropic_events import AnthropicSpeaker
from tests.fakes.models.chat_events import ChatSpeaker
from tests.fakes.models.responses_events import ResponsesSpeaker

Wire = dict[str, Any]


class Speaker(Protocol):
    """Words one reply. `last` is what the API sends behind the last event.

    A ReasoningEnd's signature is the part that a client must send back, whatever the API calls it.
    """

    last: bytes

    def events(self, chunks: Iterable[Chunk]) -> list[Wire]:
        """Return the events of the next chunks; the first have in front of them what begins a reply."""
        ...

    def whole(self, chunks: Iterable[Chunk]) -> Wire:
        """Return a reply in one piece."""
        ...

    def error(self, status: int, words: str) -> Wire:
        """Return the body of an error."""
        ...

    def prompt(self, body: Wire) -> str:
        """Return the text of a request's last message."""
        ...


def speaker_for(path: str) -> Speaker:
    """Return the speaker of the API at a path."""
    if path.endswith("/messages"):
        return AnthropicSpeaker()
    if path.endswith("/responses"):
        return ResponsesSpeaker()
    return ChatSpeaker()
