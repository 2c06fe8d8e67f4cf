"""Applies the hunks of a patch to a file's text."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from hark.protocol.tool import ToolError
from hark.tools.files.file_text import PlainText, Splice
from hark.tools.files.patching.format import Hunk
from hark.tools.files.patching.locate_hunks import HunkLocator, LineIndex


class PatchedText(Struct):
    """The text of a patched file, and notes on how it deviates from the patch."""

    text: str
    notes: list[str]


def apply_hunks(raw: str, hunks: Sequence[Hunk]) -> PatchedText:
    """Apply the hunks, which must be in file order, and return the patched text.

    Unchanged lines keep their bytes, and new lines get the line ending of their neighbours. If a line of a hunk ends
    with a carriage return, the patch states the line endings, and they are used as they are.

    Raises:
        ToolError: A hunk does not apply. The error's text names the hunk and shows lines of the file.
    """
    plain = PlainText(raw, is_literal=any(line.endswith("\r") for hunk in hunks for _, line in hunk.lines))
    is_ended = plain.text.endswith("\n") or not plain.text
    index = LineIndex(plain.text.removesuffix("\n").split("\n") if plain.text else [])
    locator = HunkLocator(index, hunks, is_ended=is_ended)
    notes: list[str] = []
    splices: list[Splice] = []
    for number, hunk in enumerate(hunks, 1):
        name = f"Hunk {number} of {len(hunks)}"
        name += f" (at line {hunk.old_index + 1})" if hunk.old_index is not None else ""
        if hunk.is_old_unended and is_ended:
            raise ToolError(f"{name} does not apply: the file has a newline at its end, but in the patch it has none.")
        at, note = locator.locate(hunk, name)
        has_no_ending = hunk.old_index is not None and len(hunk.old) <= hunk.is_old_unended
        if has_no_ending and plain.has_crlf_around(index.starts[at]):
            raise ToolError(f"{name} adds lines without context at a CRLF line ending. Include a context line.")
        if note:
            notes.append(f"{name}: {note}")
        ends_with_newline = is_ended if not hunk.states_file_end else not hunk.is_new_unended
        splices.extend(
            _splice(index, lines, new, is_ended, ends_with_newline) for lines, new in _changed_ranges(hunk, at)
        )
    return PatchedText(plain.replace(splices), notes)


def _changed_ranges(hunk: Hunk, at: int) -> Iterator[tuple[range, list[str]]]:
    """Yield the ranges of the file's lines that the hunk replaces, with their new lines. `at` is its first line."""
    first = at
    new: list[str] = []
    for sign, text in [*hunk.lines, (" ", "")]:
        if sign == "+":
            new.append(text)
            continue
        if sign == " " and (at > first or new):
            yield range(first, at), new
        at += 1
        if sign == " ":
            first, new = at, []


def _splice(index: LineIndex, lines: range, new: list[str], is_ended: bool, ends_with_newline: bool) -> Splice:
    """Return the splice that replaces whole lines. Only the file's last line may have no newline."""
    start, end = index.starts[lines.start], index.starts[lines.stop]
    text = "".join(f"{line}\n" for line in new)
    if lines.stop < len(index.lines):
        return Splice(start, end, text)
    if not ends_with_newline and new:
        text = text[:-1]
    elif not ends_with_newline and start:
        start -= 1  # the line before becomes the last one
    if not is_ended and index.lines:
        end -= 1
        if start > end:
            start, text = end, f"\n{text}"
    return Splice(start, end, text)
