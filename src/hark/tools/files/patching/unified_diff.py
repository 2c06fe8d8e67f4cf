"""Parses unified diffs written by diff, git or models. Wrong line counts are tolerated."""

import re
from collections.abc import Sequence

from hark.tools.files.patching.format import BEGIN, RANGE, BadPatch, FileAction, FilePatch, Hunk

DEV_NULL = "/dev/null"
_PREFIX = re.compile(r"[abciow]/")


def parse_unified(lines: Sequence[str]) -> list[FilePatch]:
    """Parse the diffs of all files. Text around them is ignored.

    Raises:
        BadPatch: A hunk is malformed, or the diff needs an unsupported operation.
    """
    parser = _DiffParser(lines)
    while parser.at < len(lines):
        try:
            parser.parse_next()
        except BadPatch as problem:
            line = lines[parser.at]
            raise BadPatch(f"Line {parser.at + 1} of the patch, {line[:80]!r}: {problem}") from problem
    return [patch for patch in parser.patches if patch.path]


class _DiffParser:
    """Parses the lines of a diff, one file after another. `at` is the index of the current line."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.patches: list[FilePatch] = []
        self.at = 0
        self._lines = lines
        self._has_file_names = True

    def parse_next(self) -> None:
        line = self._lines[self.at]
        if self._is_heading():
            self._parse_file_names()
            return
        if line.startswith("@@"):
            self._parse_hunk()
            return
        if line.startswith("diff --git "):
            self.patches.append(FilePatch(FileAction.UPDATE, _common_name(line.removeprefix("diff --git "))))
            self._has_file_names = False
        elif line.rstrip() == BEGIN:
            raise BadPatch("the line follows a unified diff. Use one format.")
        elif self.patches and not self._has_file_names:
            _parse_git_header(line, self.patches[-1])
        self.at += 1

    def _is_heading(self) -> bool:
        lines = self._lines[self.at : self.at + 2]
        return len(lines) == 2 and lines[0].startswith("--- ") and lines[1].startswith("+++ ")

    def _parse_file_names(self) -> None:
        old, new = (_parse_name(line[4:]) for line in self._lines[self.at : self.at + 2])
        self.at += 2
        if self._has_file_names:
            self.patches.append(FilePatch(FileAction.UPDATE, ""))
        self._has_file_names = True
        _set_paths(self.patches[-1], old, new)

    def _parse_hunk(self) -> None:
        if not self.patches or not self.patches[-1].path:
            raise BadPatch("no --- and +++ lines before it name its file.")
        hunk = Hunk()
        if found := RANGE.match(self._lines[self.at]):
            hunk.set_position(found)
        # The numbers of old and new lines that the hunk still has to contain, according to its header.
        left = [int(found[2] or 1), int(found[4] or 1)] if found else None
        self.at += 1
        while self.at < len(self._lines) and self._parse_hunk_line(hunk, left):
            self.at += 1
        while hunk.lines and hunk.lines[-1] == (" ", "") and (left is None or left[0] < 0):
            hunk.lines.pop()
            if left is not None:
                left[0] += 1
        if hunk.lines:
            self.patches[-1].hunks.append(hunk)

    def _parse_hunk_line(self, hunk: Hunk, left: list[int] | None) -> bool:
        """Add the current line to the hunk. Return False if the line is after the hunk's end."""
        line = self._lines[self.at]
        is_complete = left is not None and max(left) <= 0
        if line.startswith(("@@", "diff --git ", "Index: ")) or (line == "-- " and is_complete):
            return False
        # A removed line may look like a heading. In that case no hunk follows it, or the counts show it.
        is_hunk_next = any(line.startswith("@@") for line in self._lines[self.at + 2 : self.at + 3])
        if self._is_heading() and (is_complete or (is_hunk_next and left != [1, 1])):
            return False
        if not hunk.add_line(line):
            if is_complete:
                return False
            raise BadPatch("each line of a hunk must begin with a space, + or -.")
        if left is not None and not line.startswith("\\"):
            left[0] -= line[:1] != "+"
            left[1] -= line[:1] != "-"
        return True


def _parse_git_header(line: str, patch: FilePatch) -> None:
    match line.split(" ", 3):
        case ["new" | "deleted" as verb, "file", "mode", mode]:
            if not mode.startswith("100"):
                raise BadPatch(
                    f"{patch.path} is a symbolic link or submodule in the patch (mode {mode}). Use the shell for it."
                )
            patch.kind = FileAction.ADD if verb == "new" else FileAction.DELETE
            patch.is_executable = mode.strip().endswith("755") or None
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
    try:
        return text[1:-1].encode().decode("unicode_escape").encode("latin-1").decode()
    except UnicodeError as error:
        raise BadPatch(f"The patch has a file name with an invalid escape sequence: {text[:80]}") from error
