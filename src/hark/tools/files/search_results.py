"""What a search found: read from what its program prints, kept within bounds, told in a few words."""

import base64
import os

import msgspec
from msgspec import Struct, field

from hark.tools.files.search_query import GrepQuery

LINE_CHARACTERS = 400
BEFORE_CHARACTERS = 100
TOLD_CHARACTERS = 60_000
BUFFER_BYTES = 4 * 1024 * 1024
ERROR_CHARACTERS = 2_000


class _Text(Struct):
    text: str | None = None
    bytes: str = ""

    def raw(self) -> "bytes":
        return self.text.encode() if self.text is not None else base64.b64decode(self.bytes)


class _Submatch(Struct):
    start: int


class _Found(Struct):
    path: _Text = field(default_factory=_Text)
    lines: _Text = field(default_factory=_Text)
    line_number: int = 0
    submatches: list[_Submatch] = field(default_factory=list[_Submatch])


class _Event(Struct):
    type: str
    data: _Found


class Findings:
    """Takes what a search prints, and keeps at most `most` results."""

    def __init__(self, query: GrepQuery, most: int) -> None:
        self.is_full = False
        self.errors = ""
        self.count = 0
        self._query = query
        self._most = most
        self._told: list[str] = []
        self._characters = 0
        self._buffer = b""
        self._is_skipping = False
        self._path = ""
        self._last_line = 0

    @property
    def text(self) -> str:
        """What was found, file by file."""
        return "\n".join(self._told)

    def take(self, piece: bytes) -> None:
        """Take a piece of what it prints; it may end anywhere."""
        if self.is_full:
            return
        *whole, rest = (self._buffer + piece).split(b"\n")
        for line in whole:
            if not self._is_skipping and not self.is_full:
                self._take_line(line)
            self._is_skipping = False
        # A line that is longer than any that could be told is passed over.
        self._is_skipping = self._is_skipping or len(rest) > BUFFER_BYTES
        self._buffer = b"" if self._is_skipping else rest

    def _take_line(self, line: bytes) -> None:
        if self._query.shows != "lines":
            self._take_count(line)
            return
        try:
            event = msgspec.json.decode(line, type=_Event)
        except msgspec.DecodeError:
            self._take_error(line)
            return
        if event.type in ("match", "context"):
            self._take_found(event.data, event.type == "match")

    def _take_error(self, line: bytes) -> None:
        self.errors = (self.errors + line.decode(errors="replace") + "\n")[:ERROR_CHARACTERS]

    def _take_count(self, line: bytes) -> None:
        name, separator, count = line.rpartition(b"\0")
        if not separator:
            self._take_error(line)
            return
        path = _plain(name)
        if self._query.wants(path) and self._has_room():
            self._tell(self._name(path) + (f": {int(count):,}" if self._query.shows == "counts" else ""))

    def _take_found(self, found: _Found, is_match: bool) -> None:
        path = _plain(found.path.raw())
        if not self._query.wants(path) or (is_match and not self._has_room()):
            return
        if path != self._path:
            if self._path:
                self._tell("")
            self._tell(self._name(path))
        elif found.line_number > self._last_line + 1 and self._query.context:
            self._tell("--")
        self._path, self._last_line = path, found.line_number
        start = found.submatches[0].start if found.submatches else 0
        self._tell(f"{found.line_number}{':' if is_match else '-'}{_cut(found.lines.raw(), start)}")

    def _has_room(self) -> bool:
        self.is_full = self.count >= self._most or self._characters >= TOLD_CHARACTERS
        self.count += not self.is_full
        return not self.is_full

    def _tell(self, line: str) -> None:
        self._told.append(line)
        self._characters += len(line) + 1

    def _name(self, path: str) -> str:
        name = f"{self._query.folder}/{path}" if self._query.folder else path
        return name.replace("//", "/").encode(errors="replace").decode()


def _plain(path: bytes) -> str:
    return os.fsdecode(path).removeprefix("./")


def _cut(line: bytes, start: int) -> str:
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    text = line.decode(errors="replace")
    if len(text) <= LINE_CHARACTERS:
        return text
    at = len(line[:start].decode(errors="replace"))
    first = max(0, min(at - BEFORE_CHARACTERS, len(text) - LINE_CHARACTERS))
    last = first + LINE_CHARACTERS
    return f"{'…' if first else ''}{text[first:last]}{'…' if last < len(text) else ''}"
