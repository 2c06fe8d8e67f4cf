"""Parses patches in two formats: unified diffs, and sections after *** Begin Patch."""

import re
from collections.abc import Sequence

from hark.tools.files.patching.format import BEGIN, RANGE, BadPatch, FileAction, FilePatch, Hunk
from hark.tools.files.patching.unified_diff import parse_unified

_END = "*** End Patch"
_END_OF_FILE = "*** End of File"
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE = re.compile(r"\*\*\* Move to: (.+)")


def parse_begin_patch(lines: Sequence[str]) -> list[FilePatch]:
    """Parse all blocks from *** Begin Patch to *** End Patch. Text around them is ignored if it can't be a change.

    Raises:
        BadPatch: A line is invalid at its position, or the last block has no end.
    """
    patches: list[FilePatch] = []
    block: list[FilePatch] | None = None
    for number, line in enumerate(lines, 1):
        try:
            if block is None and line.rstrip() == BEGIN:
                block = []
            elif block is None:
                _require_no_change(line, is_after_block=bool(patches))
            elif line.rstrip() == _END:
                patches += block
                block = None
            else:
                _parse_line(line, block)
        except BadPatch as problem:
            raise BadPatch(f"Line {number} of the patch, {line[:80]!r}: {problem}") from problem
    if block is not None:
        raise BadPatch(f"The patch has no line {_END}, so its end may be missing. Send it again completely.")
    for patch in patches:
        _remove_blank_ends(patch)
    return patches


def _require_no_change(line: str, is_after_block: bool) -> None:
    is_patch_line = is_after_block and line.strip() and line.startswith((" ", "+", "-", "@@", "*** ", "diff --git "))
    if is_patch_line or _FILE.fullmatch(line.rstrip()):
        raise BadPatch(f"the line is outside of {BEGIN} and {_END}. Remove it, or put it into a block.")


def _parse_line(line: str, patches: list[FilePatch]) -> None:
    if found := _FILE.fullmatch(line.rstrip()):
        patches.append(FilePatch(FileAction(found[1].lower()), found[2].strip(), hunks=[Hunk()]))
        return
    if not patches:
        if line.strip():
            raise BadPatch("expected *** Add File:, *** Update File: or *** Delete File: first.")
        return
    patch = patches[-1]
    if patch.kind is FileAction.UPDATE:
        _parse_update_line(line, patch)
    elif patch.kind is FileAction.DELETE and line.strip():
        raise BadPatch("a Delete File section can't contain lines; expected a line that starts with ***.")
    elif patch.kind is FileAction.ADD and line.strip() and not line.startswith("+"):
        raise BadPatch("each line of an added file must begin with +.")
    elif patch.kind is FileAction.ADD:
        patch.hunks[-1].add_line(line.strip() and line)  # an empty line may also be the gap between two files


def _parse_update_line(line: str, patch: FilePatch) -> None:
    hunk = patch.hunks[-1]
    if found := _MOVE.fullmatch(line.rstrip()):
        patch.new_path = found[1].strip()
    elif line.startswith("@@"):
        _parse_heading(line, patch)
    elif line.rstrip() == _END_OF_FILE:
        hunk.is_at_end = True
    elif line == "" and hunk.is_at_end:
        pass  # a gap after the end of the file
    elif not hunk.add_line(line):
        raise BadPatch("expected a line that begins with a space, + or -, or with @@ or ***.")


def _parse_heading(line: str, patch: FilePatch) -> None:
    if patch.hunks[-1].lines:
        patch.hunks.append(Hunk())
    hunk = patch.hunks[-1]
    if found := RANGE.match(line.rstrip()):
        hunk.set_position(found)
    elif heading := line.removeprefix("@@").strip().removesuffix("@@").strip():
        hunk.headings.append(heading)


def _remove_blank_ends(patch: FilePatch) -> None:
    """Remove blank lines between sections, which were parsed as context, and hunks without lines."""
    for hunk in patch.hunks:
        while hunk.lines and hunk.lines[-1] == (" ", "") and not hunk.is_at_end:
            hunk.lines.pop()
        if patch.kind is FileAction.ADD:
            hunk.lines = [("+", text) for _, text in hunk.lines]
    patch.hunks = [hunk for hunk in patch.hunks if hunk.lines]


def parse_patch(text: str) -> list[FilePatch]:
    """Parse a patch in either format.

    Raises:
        BadPatch: The text is in neither format. The message names the invalid line.
    """
    lines = _remove_fence(_remove_transport_endings(text.split("\n")))
    first = next((line for line in lines if line.rstrip() == BEGIN or line.startswith(("--- ", "diff --git "))), "")
    patches = parse_begin_patch(lines) if first.rstrip() == BEGIN else parse_unified(lines)
    if not patches:
        raise BadPatch(
            "The text contains no patch. Give a unified diff (--- a/file, +++ b/file, @@ -1,3 +1,4 @@), "
            "or *** Begin Patch with sections such as *** Update File: path."
        )
    return patches


def _remove_transport_endings(lines: list[str]) -> list[str]:
    """Remove carriage returns if all lines have one. Otherwise they belong to the files' lines."""
    if all(line.endswith("\r") for line in lines[:-1]):
        return [line.removesuffix("\r") for line in lines]
    return lines


def _remove_fence(lines: list[str]) -> list[str]:
    """Remove the code fence that models often put around a patch."""
    while lines and not lines[-1]:
        lines.pop()
    if len(lines) > 1 and lines[0].startswith("```") and lines[-1].strip() == "```":
        return lines[1:-1]
    return lines
