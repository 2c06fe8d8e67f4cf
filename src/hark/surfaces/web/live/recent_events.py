"""The latest events of a session, limited in number and bytes. Each is encoded once."""

from collections import deque
from collections.abc import Sequence

import msgspec

from hark.protocol.events import AnyEvent, CallEnd, CallOutput, CallStart, MessageAccepted, ReplyDelta, TurnEnd
from hark.protocol.outcomes import Completed
from hark.surfaces.web.live.stream import encode_sse

MAX_EVENTS = 4_096
MAX_BYTES = 1_000_000
_EVENT_BYTES = 250  # approximate size of an event without its text


class EventBuffer:
    """A buffer of events. An event's position is the number of events added before it; `end` is the next position."""

    def __init__(self) -> None:
        self._events: deque[_BufferedEvent] = deque()
        self._bytes = 0
        self.end = 0

    def append(self, event: AnyEvent) -> None:
        """Append an event, and drop the oldest events if a limit is exceeded."""
        buffered = _BufferedEvent(event)
        self._events.append(buffered)
        self._bytes += buffered.size
        self.end += 1
        # A single event above the byte limit stays, because its reader must receive it.
        while len(self._events) > MAX_EVENTS or (self._bytes > MAX_BYTES and len(self._events) > 1):
            self._bytes -= self._events.popleft().size

    @property
    def last_seq(self) -> int | None:
        """The `seq` of the last event, or None before the first event."""
        return self._events[-1].event.seq if self._events else None

    def position_after(self, seq: int) -> int | None:
        """Return the position after the event with this `seq`, or None if that event is no longer known."""
        for back, buffered in enumerate(reversed(self._events)):
            if buffered.event.seq <= seq:
                return self.end - back if buffered.event.seq == seq else None
        return self.end - len(self._events) if self._events and self._events[0].event.seq == seq + 1 else None

    def encoded_from(self, position: int) -> list[bytes] | None:
        """Return the encoded events starting at `position`, or None if some of them were dropped."""
        missing = self.end - position
        if missing > len(self._events):
            return None
        return [self._events[-back].encoded() for back in range(missing, 0, -1)]


class _BufferedEvent:
    """An event and its encoded form, which is computed when a client first reads it."""

    def __init__(self, event: AnyEvent) -> None:
        self.event = event
        self.size = _EVENT_BYTES + _text_size(event)
        self._encoded = b""

    def encoded(self) -> bytes:
        """Return the event as a server-sent event."""
        if not self._encoded:
            self._encoded = encode_sse(self.event.type, msgspec.json.encode(self.event), self.event.seq)
        return self._encoded


def _text_size(event: AnyEvent) -> int:
    match event:
        case ReplyDelta(text=text) | CallOutput(text=text) | CallEnd(text=text) | MessageAccepted(text=text):
            return len(text)
        case CallStart(arguments=arguments):
            return len(arguments)
        case TurnEnd(outcome=Completed(text)):
            return len(text)
        case _:
            return 0


def merge_reply_deltas(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """Merge adjacent reply deltas of a turn into one event, which has the `seq` of the last delta."""
    merged: list[AnyEvent] = []
    pieces: list[str] = []
    for index, event in enumerate(events):
        if isinstance(event, ReplyDelta):
            pieces.append(event.text)
            following = events[index + 1] if index + 1 < len(events) else None
            if isinstance(following, ReplyDelta) and following.turn == event.turn:
                continue
            if len(pieces) > 1:
                event = ReplyDelta(event.session, event.turn, event.seq, event.at, "".join(pieces))
            pieces.clear()
        merged.append(event)
    return merged
