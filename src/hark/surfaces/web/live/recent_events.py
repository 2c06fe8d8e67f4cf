"""The last events of a session, bounded in number and bytes, each encoded once."""

from collections import deque
from collections.abc import Sequence

import msgspec

from hark.protocol.events import AnyEvent, CallEnd, CallOutput, CallStart, MessageAccepted, ReplyDelta, TurnEnd
from hark.protocol.outcomes import Completed
from hark.surfaces.web.live.stream import sse

KEPT_EVENTS = 4_096
KEPT_BYTES = 1_000_000
_EVENT_BYTES = 250  # about what an event takes without its text


class KeptEvents:
    """Events by their place: how many there were before. `end` is the place behind the last one."""

    def __init__(self) -> None:
        self._kept: deque[_Kept] = deque()
        self._bytes = 0
        self.end = 0

    def add(self, event: AnyEvent) -> None:
        """Keep one more, and forget the oldest ones that are too many."""
        kept = _Kept(event)
        self._kept.append(kept)
        self._bytes += kept.size
        self.end += 1
        # One event that is larger than all may be stays: its reader is to get it.
        while len(self._kept) > KEPT_EVENTS or (self._bytes > KEPT_BYTES and len(self._kept) > 1):
            self._bytes -= self._kept.popleft().size

    @property
    def last(self) -> int | None:
        """The number of the last event; None when none has come."""
        return self._kept[-1].event.seq if self._kept else None

    def place_behind(self, seq: int) -> int | None:
        """Return the place behind the event of that number; None when that can't be told any more."""
        for back, kept in enumerate(reversed(self._kept)):
            if kept.event.seq <= seq:
                return self.end - back if kept.event.seq == seq else None
        return self.end - len(self._kept) if self._kept and self._kept[0].event.seq == seq + 1 else None

    def after(self, place: int) -> list[bytes] | None:
        """Return the events from a place on; None when some of them are not kept any more."""
        missing = self.end - place
        if missing > len(self._kept):
            return None
        return [self._kept[-back].encoded() for back in range(missing, 0, -1)]


class _Kept:
    """An event, and how it is sent: worked out once, when somebody reads it."""

    def __init__(self, event: AnyEvent) -> None:
        self.event = event
        self.size = _EVENT_BYTES + _text_size(event)
        self._encoded = b""

    def encoded(self) -> bytes:
        """Return it as it is sent."""
        if not self._encoded:
            self._encoded = sse(self.event.type, msgspec.json.encode(self.event), self.event.seq)
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


def joined(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """Return the events with neighbouring pieces of a reply put together: the last one's number stands for all."""
    together: list[AnyEvent] = []
    pieces: list[str] = []
    for place, event in enumerate(events):
        if isinstance(event, ReplyDelta):
            pieces.append(event.text)
            following = events[place + 1] if place + 1 < len(events) else None
            if isinstance(following, ReplyDelta) and following.turn == event.turn:
                continue
            if len(pieces) > 1:
                event = ReplyDelta(event.session, event.turn, event.seq, event.at, "".join(pieces))
            pieces.clear()
        together.append(event)
    return together
