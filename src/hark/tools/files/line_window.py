"""Some lines of a file, found while its bytes pass by: no file is too big, and no line too long."""

from msgspec import Struct

LINE_BYTES = 4_000
WINDOW_BYTES = 60_000


class WindowLine(Struct):
    """A line's first bytes, without its end, and how many more it has."""

    content: bytes = b""
    cut: int = 0


class LineWindow:
    """Takes a file's pieces in order, keeps the lines from `first` (the first of all is 1), and counts all.

    It keeps `count` lines, or fewer when they are long.
    """

    def __init__(self, first: int, count: int) -> None:
        self.lines: list[WindowLine] = []
        self.total = 0
        self._first = first
        self._last = first + count - 1
        self._room = WINDOW_BYTES
        self._line = WindowLine()
        self._is_open = False

    @property
    def is_full(self) -> bool:
        """Whether nothing more will be kept."""
        return self.total >= self._last

    def take(self, piece: bytes) -> None:
        """Take the next bytes, at least one."""
        ends = piece.count(b"\n")
        if self.is_full or self.total + ends + 1 < self._first:
            self.total += ends
            self._is_open = not piece.endswith(b"\n")
            return
        *whole, rest = piece.split(b"\n")
        for part in whole:
            self._extend(part)
            self._end_line()
        self._extend(rest)

    def end(self) -> bool:
        """The file is over. Return whether its last line had its end."""
        is_ended = not self._is_open
        if self._is_open:
            self._end_line()
        return is_ended

    def _extend(self, part: bytes) -> None:
        if part:
            self._is_open = True
            room = LINE_BYTES - len(self._line.content)
            self._line.content += part[:room]
            self._line.cut += len(part[room:])

    def _end_line(self) -> None:
        self.total += 1
        if self._first <= self.total <= self._last:
            self._room -= len(self._line.content)
            self.lines.append(self._line)
            if self._room <= 0:
                self._last = self.total
        self._line = WindowLine()
        self._is_open = False
