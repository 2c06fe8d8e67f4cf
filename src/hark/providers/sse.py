"""Server-sent events: bytes go in as they arrive, the events' data comes out."""

_BOM = b"\xef\xbb\xbf"
MAX_EVENT_BYTES = 8 * 1024 * 1024


class EventTooLong(Exception):
    """The server sent more than the parser holds without ending the event."""


class SseParser:
    """Finds the events in a byte stream that may be split anywhere. Comments and other fields are skipped."""

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._pieces: list[bytes] = []  # of a line that has not ended
        self._lines: list[bytes] = []  # data of an event that has not ended
        self._piece_bytes = 0
        self._line_bytes = 0
        self._is_at_start = True

    def feed(self, data: bytes) -> list[bytes]:
        """Return the data of the events that these bytes complete.

        Raises:
            EventTooLong: Too much came without an end; the stream is of no more use.
        """
        newline = data.rfind(b"\n")
        if newline < 0:
            self._hold(data)
            return []
        tail = data[newline + 1 :]
        data = data[:newline]
        if self._pieces:
            data = b"".join((*self._pieces, data))
            self._pieces.clear()
            self._piece_bytes = 0
        if self._is_at_start:
            self._is_at_start = False
            data = data.removeprefix(_BOM)
        events = self._events_in(data.split(b"\n"))
        self._hold(tail)
        return events

    def finish(self) -> list[bytes]:
        """Return the last event, if the stream ended without closing it."""
        return self.feed(b"\n\n")

    def _hold(self, piece: bytes) -> None:
        if piece:
            self._pieces.append(piece)
            self._piece_bytes += len(piece)
        if self._piece_bytes + self._line_bytes > self._max_event_bytes:
            raise EventTooLong

    def _events_in(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        held = self._lines
        held_bytes = self._line_bytes
        for line in lines:
            if line[-1:] == b"\r":
                line = line[:-1]
            if line[:5] == b"data:":
                held.append(line[6:] if line[5:6] == b" " else line[5:])
                held_bytes += len(line)
            elif not line and held:
                event = held[0] if len(held) == 1 else b"\n".join(held)
                held.clear()
                held_bytes = 0
                if event:
                    events.append(event)
        self._line_bytes = held_bytes
        return events
