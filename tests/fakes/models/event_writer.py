"""The interface of a writer that converts chunks into the events of one API."""

from collections.abc import Iterable
from typing import Any, Protocol

from hark.protocol.provider import Chunk
from tests.fakes.models.anthropic_events import AnthropicEventWriter
from tests.fakes.models.chat_events import ChatEventWriter
from tests.fakes.models.responses_events import ResponsesEventWriter

Wire = dict[str, Any]


class EventWriter(Protocol):
    """Converts the chunks of one reply into API events. `terminator` is sent after the last event.

    The signature of a ReasoningEnd is written to the API's own field for data that clients must send back.
    """

    terminator: bytes

    def events(self, chunks: Iterable[Chunk]) -> list[Wire]:
        """Return the events for the next chunks. The first call also returns the events that start a reply."""
        ...

    def complete_reply(self, chunks: Iterable[Chunk]) -> Wire:
        """Return a complete reply as one body."""
        ...

    def error(self, status: int, text: str) -> Wire:
        """Return the body of an error response."""
        ...

    def prompt(self, body: Wire) -> str:
        """Return the text of a request's last message."""
        ...


def event_writer_for(path: str) -> EventWriter:
    """Return the event writer for the API at a path."""
    if path.endswith("/messages"):
        return AnthropicEventWriter()
    if path.endswith("/responses"):
        return ResponsesEventWriter()
    return ChatEventWriter()
