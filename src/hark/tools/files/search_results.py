"""Collects search results from the output of a search program, within limits, and formats them."""

import base64
import os

import msgspec
from msgspec import Struct, field

from hark.tools.files.search_query import GrepQuery

MAX_LINE_CHARACTERS = 400
CHARACTERS_BEFORE_MATCH = 100
MAX_TEXT_CHARACTERS = 60_000
MAX_BUFFER_BYTES = 4 * 1024 * 1024
MAX_ERROR_CHARACTERS = 2_000


class _RipgrepText(Struct):
    text: str | None = None
    bytes: str = ""

    def to_bytes(self) -> "bytes":
        return self.text.encode() if self.text is not None else base64.b64decode(self.bytes)


class _Submatch(Struct):
    start: int


class _RipgrepLine(Struct):
    path: _RipgrepText = field(default_factory=_RipgrepText)
    lines: _RipgrepText = field(default_factory=_RipgrepText)
    line_number: int = 0
    submatches: list[_Submatch] = field(default_factory=list[_Submatch])


class _RipgrepEvent(Struct):
    type: str
    data: _RipgrepLine


class GrepResults:
    """Parses the output of a search program and stores at most `max_results` results."""

    def __init__(self, query: GrepQuery, max_results: int) -> None:
        self.is_full = False
        self.errors = ""
        self.count = 0
        self._query = query
        self._max_results = max_results
        self._lines: list[str] = []
        self._characters = 0
        self._buffer = b""
        self._is_skipping = False
        self._path = ""
        self._last_line = 0

    @property
    def text(self) -> str:
        """The results as text, grouped by file."""
        return "\n".join(self._lines)

    def feed(self, piece: bytes) -> None:
        """Process a piece of the output, which may end anywhere, even in the middle of a line."""
        if self.is_full:
            return
        *whole, rest = (self._buffer + piece).split(b"\n")
        for line in whole:
            if not self._is_skipping and not self.is_full:
                self._parse_line(line)
            self._is_skipping = False
        # Skip a line that is too long to be shown.
        self._is_skipping = self._is_skipping or len(rest) > MAX_BUFFER_BYTES
        self._buffer = b"" if self._is_skipping else rest

    def _parse_line(self, line: bytes) -> None:
        if self._query.shows == "names":
            self._add_name(_relative_path(line))
            return
        if self._query.shows != "lines":
            self._parse_count(line)
            return
        try:
            event = msgspec.json.decode(line, type=_RipgrepEvent)
        except msgspec.DecodeError:
            self._add_error(line)
            return
        if event.type in ("match", "context"):
            self._add_match_or_context(event.data, event.type == "match")

    def _add_error(self, line: bytes) -> None:
        self.errors = (self.errors + line.decode(errors="replace") + "\n")[:MAX_ERROR_CHARACTERS]

    def _parse_count(self, line: bytes) -> None:
        name, separator, count = line.rpartition(b"\0")
        if not separator:
            self._add_error(line)
            return
        self._add_name(_relative_path(name), f": {int(count):,}" if self._query.shows == "counts" else "")

    def _add_name(self, path: str, count: str = "") -> None:
        if self._query.includes(path) and self._reserve_result():
            self._add_line(self._display_name(path) + count)

    def _add_match_or_context(self, found: _RipgrepLine, is_match: bool) -> None:
        path = _relative_path(found.path.to_bytes())
        if not self._query.includes(path) or (is_match and not self._reserve_result()):
            return
        if path != self._path:
            if self._path:
                self._add_line("")
            self._add_line(self._display_name(path))
        elif found.line_number > self._last_line + 1 and self._query.context:
            self._add_line("--")
        self._path, self._last_line = path, found.line_number
        start = found.submatches[0].start if found.submatches else 0
        self._add_line(f"{found.line_number}{':' if is_match else '-'}{_excerpt(found.lines.to_bytes(), start)}")

    def _reserve_result(self) -> bool:
        self.is_full = self.count >= self._max_results or self._characters >= MAX_TEXT_CHARACTERS
        self.count += not self.is_full
        return not self.is_full

    def _add_line(self, line: str) -> None:
        self._lines.append(line)
        self._characters += len(line) + 1

    def _display_name(self, path: str) -> str:
        name = f"{self._query.folder}/{path}" if self._query.folder else path
        return name.replace("//", "/").encode(errors="replace").decode()


def _relative_path(path: bytes) -> str:
    return os.fsdecode(path).removeprefix("./")


def _excerpt(line: bytes, start: int) -> str:
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    text = line.decode(errors="replace")
    if len(text) <= MAX_LINE_CHARACTERS:
        return text
    at = len(line[:start].decode(errors="replace"))
    first = max(0, min(at - CHARACTERS_BEFORE_MATCH, len(text) - MAX_LINE_CHARACTERS))
    last = first + MAX_LINE_CHARACTERS
    return f"{'…' if first else ''}{text[first:last]}{'…' if last < len(text) else ''}"
