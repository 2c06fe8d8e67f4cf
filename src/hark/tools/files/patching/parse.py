"""Reads the text of a patch, in whichever of two formats it is."""

from hark.tools.files.patching.begin_patch import BEGIN, parse_begin
from hark.tools.files.patching.format import BadPatch, FilePatch
from hark.tools.files.patching.unified_diff import parse_unified


def parse(text: str) -> list[FilePatch]:
    """Read a patch, in whichever format it is.

    Raises:
        BadPatch: It is in neither. The text says which line is wrong.
    """
    lines = _without_fence(text.replace("\r\n", "\n").split("\n"))
    begin = next((at for at, line in enumerate(lines) if line.strip() == BEGIN), None)
    patches = parse_unified(lines) if begin is None else parse_begin(lines[begin + 1 :], begin + 2)
    if not patches:
        raise BadPatch(
            "There is no patch in the text. Give a unified diff (--- a/file, +++ b/file, @@ -1,3 +1,4 @@), "
            "or *** Begin Patch with *** Update File: and the like."
        )
    return patches


def _without_fence(lines: list[str]) -> list[str]:
    """Leave out the fence that models like to put around code."""
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    if len(lines) > 1 and lines[0].startswith("```") and lines[-1].strip() == "```":
        return lines[1:-1]
    return lines
