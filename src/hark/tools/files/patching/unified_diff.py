"""Parses unified diffs written by diff, git or models. Wrong line counts are tolerated."""

import re
from collections.abc import Sequence

from msgspec import Struct

from hark.tools.files.patching.format import BEGIN, RANGE, BadPatch, FileAction, FilePatch, Hunk

DEV_NULL = "/dev/null"
_PREFIX = re.compile(r"[abciow]/")
_QUOTED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\", b"r": b"\r"}


def parse_unified(lines: Sequence[str]) -> list[FilePatch]:
    """Parse the diffs of all files. Text around them is ignored.

    Raises:
        BadPatch: A hunk is malformed, or the diff needs an unsupported operation.
    """
    reader = _DiffParser(lines)
    while not reader.is_at_end:
        reader.parse_next()
    return [patch for patch in reader.patches if patch.path]


class _RemainingLines(Struct):
    """The numbers of old and new lines that, according to its header, the hunk still has to contain."""

    old: int
    new: int

    def count_line(self, sign: str) -> None:
        self.old -= sign != "+"
        self.new -= sign != "-"


class _DiffParser:
    """Parses the lines of a diff, one file after another."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.patches: list[FilePatch] = []
        self._lines = lines
        self._at = 0
        self._has_file_names = True

    @property
    def is_at_end(self) -> bool:
        return self._at >= len(self._lines)

    def parse_next(self) -> None:
        line = self._lines[self._at]
        if line.startswith("diff --git "):
            self._at += 1
            self.patches.append(FilePatch(FileAction.UPDATE, _common_name(line.removeprefix("diff --git "))))
            self._has_file_names = False
        elif self._is_heading():
            self._parse_file_names()
        elif line.startswith("@@"):
            self._parse_hunk()
        elif line.rstrip() == BEGIN:
            raise BadPatch(f"Line {self._at + 1} of the patch, {BEGIN!r}, follows a unified diff. Use one format.")
        else:
            self._at += 1
            if self.patches and not self._has_file_names:
                _parse_git_header(line, self.patches[-1])

    def _is_heading(self) -> bool:
        lines = self._lines[self._at : self._at + 2]
        return len(lines) == 2 and lines[0].startswith("--- ") and lines[1].startswith("+++ ")

    def _is_hunk_next(self) -> bool:
        return any(line.startswith("@@") for line in self._lines[self._at + 2 : self._at + 3])

    def _parse_file_names(self) -> None:
        old, new = (_parse_name(line[4:]) for line in self._lines[self._at : self._at + 2])
        self._at += 2
        if self._has_file_names:
            self.patches.append(FilePatch(FileAction.UPDATE, ""))
        self._has_file_names = True
        _set_paths(self.patches[-1], old, new)

    def _parse_hunk(self) -> None:
        head = self._lines[self._at]
        if not self.patches or not self.patches[-1].path:
            raise BadPatch(
                f"Line {self._at + 1} of the patch, {head[:80]!r}: no --- and +++ lines before it name its file."
            )
        hunk = Hunk()
        if found := RANGE.match(head):
            hunk.set_position(found)
        counts = _RemainingLines(int(found[2] or 1), int(found[4] or 1)) if found else None
        self._at += 1
        while not self.is_at_end and self._parse_hunk_line(hunk, counts):
            self._at += 1
        while hunk.lines and hunk.lines[-1] == (" ", "") and (counts is None or counts.old < 0):
            hunk.lines.pop()
            if counts is not None:
                counts.old += 1
        if hunk.lines:
            self.patches[-1].hunks.append(hunk)

    def _parse_hunk_line(self, hunk: Hunk, counts: "_RemainingLines | None") -> bool:
        """Add the current line to the hunk. Return False if the line is after the hunk's end."""
        line = self._lines[self._at]
        is_complete = counts is not None and counts.old <= 0 and counts.new <= 0
        if line.startswith(("@@", "diff --git ", "Index: ")) or (line == "-- " and is_complete):
            return False
        # A removed line may look like a heading. In that case no hunk follows it, or the counts show it.
        if self._is_heading() and (is_complete or (self._is_hunk_next() and counts != _RemainingLines(1, 1))):
            return False
        if line.startswith("\\"):
            hunk.end_without_newline()
        elif line == "" or line[0] in " +-":
            hunk.lines.append((line[:1] or " ", line[1:]))
            if counts is not None:
                counts.count_line(line[:1])
        elif is_complete:
            return False
        else:
            raise BadPatch(
                f"Line {self._at + 1} of the patch, {line[:80]!r}: each line of a hunk must begin with a space, + or -."
            )
        return True


def _parse_git_header(line: str, patch: FilePatch) -> None:
    parts = line.split(" ", 3)
    match parts:
        case ["new", "file", "mode", mode]:
            patch.kind, patch.is_executable = FileAction.ADD, mode.strip().endswith("755") or None
            _require_regular_file(mode, patch)
        case ["deleted", "file", "mode", mode]:
            patch.kind = FileAction.DELETE
            _require_regular_file(mode, patch)
        case ["new", "mode", mode]:
            patch.is_executable = mode.strip().endswith("755")
        case ["rename", "from", *_]:
            patch.path = _parse_name(line.removeprefix("rename from "))
        case ["rename", "to", *_]:
            patch.new_path = _parse_name(line.removeprefix("rename to "))
        case ["copy", "from", *_]:
            raise BadPatch("The patch copies a file, which is not supported. Add it as a new file.")
        case ["GIT", "binary", *_] | ["Binary", "files", *_]:
            raise BadPatch(f"The patch of {patch.path} is binary, which is not supported.")
        case _:
            pass


def _require_regular_file(mode: str, patch: FilePatch) -> None:
    if not mode.strip().startswith("100"):
        raise BadPatch(
            f"{patch.path} is a symbolic link or submodule in the patch (mode {mode}). Use the shell for it."
        )


def _set_paths(patch: FilePatch, old: str, new: str) -> None:
    is_prefixed = _is_prefixed(old, new)
    plain_old, plain_new = (_PREFIX.sub("", name, count=1) if is_prefixed else name for name in (old, new))
    if old == DEV_NULL:
        patch.kind, patch.path = FileAction.ADD, plain_new
    elif new == DEV_NULL:
        patch.kind, patch.path = FileAction.DELETE, plain_old
    elif patch.new_path:
        pass  # git's header lines have already named both paths
    elif is_prefixed and plain_old != plain_new:
        patch.path, patch.new_path = plain_old, plain_new
    else:
        patch.path = plain_new  # the old name is that of a copy, such as file.orig


def _is_prefixed(old: str, new: str) -> bool:
    """Return whether the names have the usual old-file and new-file prefixes, as in a/file and b/file."""
    if old == DEV_NULL or new == DEV_NULL:
        return (old if new == DEV_NULL else new).startswith(("a/", "b/"))
    return bool(_PREFIX.match(old) and _PREFIX.match(new)) and old[0] != new[0]


def _common_name(names: str) -> str:
    """Return the file name from `a/name b/name`, for diffs without other file names, or "" if the names differ."""
    half = len(names) // 2
    old, new = _parse_name(names[:half]), _parse_name(names[half + 1 :])
    is_same = _is_prefixed(old, new) and old[2:] == new[2:]
    return old[2:] if is_same else ""


def _parse_name(text: str) -> str:
    """Parse a file name: drop the timestamp after it, and unquote it if git quoted it."""
    text = text.split("\t")[0].rstrip()
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    return _QUOTED.sub(_unescape, text[1:-1].encode()).decode(errors="replace")


def _unescape(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _ESCAPES.get(code, code)
