"""Reads unified diffs, as diff and git make them, and as models write them: wrong counts do no harm."""

import re
from collections.abc import Sequence

from msgspec import Struct

from hark.tools.files.patching.format import BadPatch, FileAction, FilePatch, Hunk

NOWHERE = "/dev/null"
_RANGE = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_PREFIX = re.compile(r"[abciow]/")
_QUOTED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\", b"r": b"\r"}


def parse_unified(lines: Sequence[str]) -> list[FilePatch]:
    """Read all files' diffs; text around them is passed over.

    Raises:
        BadPatch: A hunk is broken, or what it asks for can't be done.
    """
    reader = _Reader(lines)
    while not reader.is_over:
        reader.take()
    return [patch for patch in reader.patches if patch.path]


class _Counts(Struct):
    """How many old and new lines a hunk still lacks, by its own words."""

    old: int
    new: int

    def take(self, sign: str) -> None:
        self.old -= sign != "+"
        self.new -= sign != "-"


class _Reader:
    """Goes through the lines, one file after the other."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.patches: list[FilePatch] = []
        self._lines = lines
        self._at = 0
        self._is_named = True

    @property
    def is_over(self) -> bool:
        return self._at >= len(self._lines)

    def take(self) -> None:
        line = self._lines[self._at]
        if line.startswith("diff --git "):
            self._at += 1
            self.patches.append(FilePatch(FileAction.UPDATE, _same_name(line.removeprefix("diff --git "))))
            self._is_named = False
        elif self._is_heading():
            self._take_names()
        elif line.startswith("@@"):
            self._take_hunk()
        else:
            self._at += 1
            if self.patches and not self._is_named:
                _take_git_line(line, self.patches[-1])

    def _is_heading(self) -> bool:
        lines = self._lines[self._at : self._at + 2]
        return len(lines) == 2 and lines[0].startswith("--- ") and lines[1].startswith("+++ ")

    def _is_hunk_next(self) -> bool:
        return any(line.startswith("@@") for line in self._lines[self._at + 2 : self._at + 3])

    def _take_names(self) -> None:
        old, new = (_name(line[4:]) for line in self._lines[self._at : self._at + 2])
        self._at += 2
        if self._is_named:
            self.patches.append(FilePatch(FileAction.UPDATE, ""))
        self._is_named = True
        _set_names(self.patches[-1], old, new)

    def _take_hunk(self) -> None:
        head = self._lines[self._at]
        if not self.patches or not self.patches[-1].path:
            raise BadPatch(
                f"Line {self._at + 1} of the patch, {head[:80]!r}: no --- and +++ lines name its file before."
            )
        found = _RANGE.match(head)
        hunk = Hunk(start=int(found[1]) if found else None)
        counts = _Counts(int(found[2] or 1), int(found[4] or 1)) if found else None
        self._at += 1
        while not self.is_over and self._take_line(hunk, counts):
            self._at += 1
        while hunk.lines and hunk.lines[-1] == (" ", "") and (counts is None or counts.old < 0):
            hunk.lines.pop()
            if counts is not None:
                counts.old += 1
        if hunk.lines:
            self.patches[-1].hunks.append(hunk)

    def _take_line(self, hunk: Hunk, counts: "_Counts | None") -> bool:
        """Add the line to the hunk; False if it is behind its end."""
        line = self._lines[self._at]
        is_complete = counts is not None and counts.old <= 0 and counts.new <= 0
        if line.startswith(("@@", "diff --git ", "Index: ")) or (line == "-- " and is_complete):
            return False
        # A removed line may look like a heading: then no hunk follows it, or the counts say so.
        if self._is_heading() and (is_complete or (self._is_hunk_next() and counts != _Counts(1, 1))):
            return False
        if line.startswith("\\"):
            hunk.end_without_newline()
        elif line == "" or line[0] in " +-":
            hunk.lines.append((line[:1] or " ", line[1:]))
            if counts is not None:
                counts.take(line[:1])
        elif is_complete:
            return False
        else:
            raise BadPatch(
                f"Line {self._at + 1} of the patch, {line[:80]!r}: each line of a hunk begins with a blank, + or -."
            )
        return True


def _take_git_line(line: str, patch: FilePatch) -> None:
    words = line.split(" ", 3)
    match words:
        case ["new", "file", "mode", mode]:
            patch.kind, patch.is_executable = FileAction.ADD, mode.strip().endswith("755") or None
            _demand_plain(mode, patch)
        case ["deleted", "file", "mode", mode]:
            patch.kind = FileAction.DELETE
            _demand_plain(mode, patch)
        case ["new", "mode", mode]:
            patch.is_executable = mode.strip().endswith("755")
        case ["rename", "from", *_]:
            patch.path = _name(line.removeprefix("rename from "))
        case ["rename", "to", *_]:
            patch.new_path = _name(line.removeprefix("rename to "))
        case ["copy", "from", *_]:
            raise BadPatch("The patch copies a file, which can't be done here. Add it as a new file.")
        case ["GIT", "binary", *_] | ["Binary", "files", *_]:
            raise BadPatch(f"The patch of {patch.path} is binary, which can't be done here.")
        case _:
            pass


def _demand_plain(mode: str, patch: FilePatch) -> None:
    if not mode.strip().startswith("100"):
        raise BadPatch(
            f"{patch.path} is a symbolic link or submodule in the patch (mode {mode}). Use the shell for it."
        )


def _set_names(patch: FilePatch, old: str, new: str) -> None:
    is_prefixed = _is_prefixed(old, new)
    plain_old, plain_new = (_PREFIX.sub("", name, count=1) if is_prefixed else name for name in (old, new))
    if old == NOWHERE:
        patch.kind, patch.path = FileAction.ADD, plain_new
    elif new == NOWHERE:
        patch.kind, patch.path = FileAction.DELETE, plain_old
    elif patch.new_path:
        pass  # git's own lines have named both
    elif is_prefixed and plain_old != plain_new:
        patch.path, patch.new_path = plain_old, plain_new
    else:
        patch.path = plain_new  # the other is a copy of it, such as file.orig


def _is_prefixed(old: str, new: str) -> bool:
    """Tell whether both names begin with a letter that stands for a side, as in a/file and b/file."""
    if old == NOWHERE or new == NOWHERE:
        return (old if new == NOWHERE else new).startswith(("a/", "b/"))
    return bool(_PREFIX.match(old) and _PREFIX.match(new)) and old[0] != new[0]


def _same_name(names: str) -> str:
    """Return the name in `a/name b/name`, for diffs that name their file nowhere else; "" if there are two."""
    half = len(names) // 2
    old, new = _name(names[:half]), _name(names[half + 1 :])
    is_same = _is_prefixed(old, new) and old[2:] == new[2:]
    return old[2:] if is_same else ""


def _name(text: str) -> str:
    """Return a file's name: without the time behind it, and out of git's quotes."""
    text = text.split("\t")[0].rstrip()
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    return _QUOTED.sub(_unescaped, text[1:-1].encode()).decode(errors="replace")


def _unescaped(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _ESCAPES.get(code, code)
