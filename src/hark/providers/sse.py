"""Parses server-sent events from a byte stream."""

_BOM = b"\xef\xbb\xbf"
MAX_EVENT_BYTES = 8 * 1024 * 1024


class EventTooLong(Exception):
    """An event exceeded the size limit."""


class SseParser:
    """Finds the events in a byte stream, which may be split anywhere. Skips comments and fields other than data."""

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._pieces: list[bytes] = []  # pieces of the unfinished line
        self._lines: list[bytes] = []  # data lines of the unfinished event
        self._piece_bytes = 0
        self._line_bytes = 0
        self._is_at_start = True
        self._is_after_cr = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the data of the events that these bytes complete.

        Raises:
            EventTooLong: An event is too long. The stream can't be parsed any further.
        """
        data = self._unify_line_ends(data)
        newline = data.rfind(b"\n")
        if newline < 0:
            self._buffer(data)
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
        events = self._parse_lines(data.split(b"\n"))
        self._buffer(tail)
        return events

    def finish(self) -> list[bytes]:
        """Return the last event if the stream ended without the blank line that completes it."""
        self._is_after_cr = False
        return self.feed(b"\n\n")

    def _unify_line_ends(self, data: bytes) -> bytes:
        """Return the data with LF for CR and CRLF. The two bytes of a CRLF may arrive in separate reads."""
        if self._is_after_cr and data:
            data = data.removeprefix(b"\n")
            self._is_after_cr = False
        if b"\r" not in data:
            return data
        self._is_after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _buffer(self, piece: bytes) -> None:
        if piece:
            self._pieces.append(piece)
            self._piece_bytes += len(piece)
        if self._piece_bytes + self._line_bytes > self._max_event_bytes:
            raise EventTooLong

    def _parse_lines(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        data_lines = self._lines
        data_bytes = self._line_bytes
        for line in lines:
            if line[:5] == b"data:" or line == b"data":
                data_lines.append(line[6:] if line[5:6] == b" " else line[5:])
                data_bytes += len(line)
            elif not line and data_lines:
                event = data_lines[0] if len(data_lines) == 1 else b"\n".join(data_lines)
                data_lines.clear()
                data_bytes = 0
                if event:
                    events.append(event)
        self._line_bytes = data_bytes
        return events
