"""Parses patches in two formats: unified diffs, and sections after *** Begin Patch."""

import re
from collections.abc import Sequence

from hark.tools.files.patching.format import BadPatch, FileAction, FilePatch, Hunk
from hark.tools.files.patching.unified_diff import parse_unified

BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_END_OF_FILE = "*** End of File"
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE = re.compile(r"\*\*\* Move to: (.+)")
_NUMBERED = re.compile(r"-(\d+)(?:,\d+)? \+\d+(?:,\d+)?(?: @@)?")


def parse_begin_patch(lines: Sequence[str], first_number: int = 1) -> list[FilePatch]:
    """Parse the lines after *** Begin Patch.

    Raises:
        BadPatch: A line is invalid at its position.
    """
    patches: list[FilePatch] = []
    for number, line in enumerate(lines, first_number):
        if line.strip() == _END:
            break
        try:
            _parse_line(line, patches)
        except BadPatch as problem:
            raise BadPatch(f"Line {number} of the patch, {line[:80]!r}: {problem}") from problem
    for patch in patches:
        _remove_blank_ends(patch)
    return patches


def _parse_line(line: str, patches: list[FilePatch]) -> None:
    if found := _FILE.fullmatch(line.rstrip()):
        kind = FileAction(found[1].lower())
        patches.append(FilePatch(kind, found[2].strip(), hunks=[Hunk()] if kind is FileAction.ADD else []))
        return
    if not patches:
        if line.strip():
            raise BadPatch("expected *** Add File:, *** Update File: or *** Delete File: first.")
        return
    patch = patches[-1]
    match patch.kind:
        case FileAction.ADD:
            _parse_added_line(line, patch.hunks[0])
        case FileAction.DELETE:
            if line.strip():
                raise BadPatch("a deleted file has no lines; expected another *** line.")
        case FileAction.UPDATE:
            _parse_update_line(line, patch)


def _parse_added_line(line: str, hunk: Hunk) -> None:
    if line.startswith("+"):
        hunk.lines.append(("+", line[1:]))
    elif line.strip():
        raise BadPatch("each line of an added file must begin with +.")
    else:
        hunk.lines.append((" ", ""))  # an empty line, or the gap between two files


def _parse_update_line(line: str, patch: FilePatch) -> None:
    if found := _MOVE.fullmatch(line.rstrip()):
        patch.new_path = found[1].strip()
    elif line.startswith("@@"):
        _parse_heading(line, patch)
    elif line.strip() == _END_OF_FILE:
        _current_hunk(patch).is_at_end = True
    elif line.startswith("\\"):
        _current_hunk(patch).end_without_newline()
    elif line == "" or line[0] in " +-":
        _current_hunk(patch).lines.append((line[:1] or " ", line[1:]))
    else:
        raise BadPatch("expected a line that begins with a space, + or -, or with @@ or ***.")


def _parse_heading(line: str, patch: FilePatch) -> None:
    if not patch.hunks or patch.hunks[-1].lines:
        patch.hunks.append(Hunk())
    hunk = patch.hunks[-1]
    heading = line.removeprefix("@@").strip()
    if found := _NUMBERED.match(heading):
        hunk.start = int(found[1])
    elif heading:
        hunk.headings.append(heading.removesuffix("@@").strip())


def _current_hunk(patch: FilePatch) -> Hunk:
    if not patch.hunks:
        patch.hunks.append(Hunk())
    return patch.hunks[-1]


def _remove_blank_ends(patch: FilePatch) -> None:
    """Remove blank lines between sections, which were parsed as context, and hunks that become empty."""
    for hunk in patch.hunks:
        while hunk.lines and hunk.lines[-1] == (" ", ""):
            hunk.lines.pop()
        if patch.kind is FileAction.ADD:
            hunk.lines = [("+", text) for _, text in hunk.lines]
    patch.hunks = [hunk for hunk in patch.hunks if hunk.lines]


def parse_patch(text: str) -> list[FilePatch]:
    """Parse a patch in either format.

    Raises:
        BadPatch: The text is in neither format. The message names the invalid line.
    """
    lines = _remove_fence(text.replace("\r\n", "\n").split("\n"))
    begin = next((at for at, line in enumerate(lines) if line.strip() == BEGIN), None)
    patches = parse_unified(lines) if begin is None else parse_begin_patch(lines[begin + 1 :], begin + 2)
    if not patches:
        raise BadPatch(
            "The text contains no patch. Give a unified diff (--- a/file, +++ b/file, @@ -1,3 +1,4 @@), "
            "or *** Begin Patch with sections such as *** Update File: path."
        )
    return patches


def _remove_fence(lines: list[str]) -> list[str]:
    """Remove the code fence that models often put around a patch."""
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    if len(lines) > 1 and lines[0].startswith("```") and lines[-1].strip() == "```":
        return lines[1:-1]
    return lines
