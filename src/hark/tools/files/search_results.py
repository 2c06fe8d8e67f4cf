"""Collects search results from the output of a search program, within limits, and formats them."""

import os
import re
from pathlib import Path

from hark.text.cleanup import replace_surrogates
from hark.tools.files.search_query import GrepQuery

MAX_LINE_CHARACTERS = 400
CHARACTERS_BEFORE_MATCH = 100
MAX_TEXT_CHARACTERS = 60_000
MAX_BUFFER_BYTES = 4 * 1024 * 1024
MAX_ERROR_CHARACTERS = 2_000
# A file's name and the number of its matching lines, or a matching line, or a line of the context. ripgrep omits the
# column of an empty match at the end of a file.
_LINE = re.compile(
    rb"(?P<path>[^\0]*)\0(?P<number>\d+)(?:(?:(?P<match>\0)(?:(?P<column>\d+)\0)?|-)(?P<text>.*))?", re.DOTALL
)


class GrepResults:
    """Parses the output of a search program and stores at most `max_results` results."""

    def __init__(self, query: GrepQuery, max_results: int) -> None:
        self.is_full = False
        self.is_timed_out = False
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

    def feed(self, piece: bytes) -> bool:
        """Process a piece of the output, which may end anywhere. Return whether no more results fit."""
        *whole, rest = (self._buffer + piece).split(b"\n")
        for line in whole:
            if not self._is_skipping and not self.is_full:
                self._parse_line(line)
            self._is_skipping = False
        # Skip a line that is too long to be shown.
        self._is_skipping = self._is_skipping or len(rest) > MAX_BUFFER_BYTES
        self._buffer = b"" if self._is_skipping else rest
        return self.is_full

    def _parse_line(self, line: bytes) -> None:
        shows, found = self._query.shows, _LINE.fullmatch(line.removesuffix(b"\r"))
        if shows == "names":
            self._add_name(_relative_path(line))
        elif found is not None and shows == "lines":
            self._add_match_or_context(found)
        elif found is not None:
            self._add_name(_relative_path(found["path"]), f": {int(found['number']):,}" if shows == "counts" else "")
        elif not line.startswith(b"./"):  # not a remark about a binary file
            self.errors = (self.errors + line.decode(errors="replace") + "\n")[:MAX_ERROR_CHARACTERS]

    def _add_name(self, path: str, count: str = "") -> None:
        if self._query.includes(path) and self._reserve_result():
            self._add_line(self._display_name(path) + count)

    def _add_match_or_context(self, found: re.Match[bytes]) -> None:
        path, number, is_match = _relative_path(found["path"]), int(found["number"]), found["match"] is not None
        if not self._query.includes(path) or (is_match and not self._reserve_result()):
            return
        if path != self._path:
            if self._path:
                self._add_line("")
            self._add_line(self._display_name(path))
        elif number > self._last_line + 1 and self._query.context:
            self._add_line("--")
        self._path, self._last_line = path, number
        self._add_line(f"{number}{':' if is_match else '-'}{_excerpt(found['text'], int(found['column'] or 1) - 1)}")

    def _reserve_result(self) -> bool:
        self.is_full = self.count >= self._max_results or self._characters >= MAX_TEXT_CHARACTERS
        self.count += not self.is_full
        return not self.is_full

    def _add_line(self, line: str) -> None:
        self._lines.append(line)
        self._characters += len(line) + 1

    def _display_name(self, path: str) -> str:
        return replace_surrogates(str(Path(self._query.folder, path)))


def _relative_path(path: bytes) -> str:
    return os.fsdecode(path).removeprefix("./")


def _excerpt(line: bytes, start: int) -> str:
    text = line.decode(errors="replace")
    if len(text) <= MAX_LINE_CHARACTERS:
        return text
    at = len(line[:start].decode(errors="replace"))
    first = max(0, min(at - CHARACTERS_BEFORE_MATCH, len(text) - MAX_LINE_CHARACTERS))
    last = first + MAX_LINE_CHARACTERS
    return f"{'…' if first else ''}{text[first:last]}{'…' if last < len(text) else ''}"
