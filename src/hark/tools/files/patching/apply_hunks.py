"""Applies the hunks of a patch to a file's text."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from hark.protocol.tool import ToolError
from hark.tools.files.file_text import PlainText, Splice
from hark.tools.files.patching.format import Hunk
from hark.tools.files.patching.locate_hunks import HunkLocator


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
    is_literal = any(line.endswith("\r") for hunk in hunks for _, line in hunk.lines)
    plain = PlainText(raw, is_literal=is_literal, end_last_line=True)
    ends_with_newline = is_ended = raw.endswith("\n") or not raw
    locator = HunkLocator(plain.text, hunks, is_ended=is_ended)
    notes: list[str] = []
    splices: list[Splice] = []
    for number, hunk in enumerate(hunks, 1):
        name = f"Hunk {number} of {len(hunks)}"
        name += f" (at line {hunk.old_index + 1})" if hunk.old_index is not None else ""
        if hunk.is_old_unended and is_ended:
            raise ToolError(f"{name} does not apply: the file has a newline at its end, but in the patch it has none.")
        at, note = locator.locate(hunk, name)
        has_no_ending = hunk.old_index is not None and len(hunk.old) <= hunk.is_old_unended
        if has_no_ending and plain.has_crlf_around(locator.starts[at]):
            raise ToolError(f"{name} adds lines without context at a CRLF line ending. Include a context line.")
        if note:
            notes.append(f"{name}: {note}")
        if hunk.is_old_unended or hunk.is_new_unended:
            ends_with_newline = not hunk.is_new_unended
        splices.extend(_changes(hunk, locator.starts, at))
    return PatchedText(plain.replace(splices, ends_with_newline=ends_with_newline), notes)


def _changes(hunk: Hunk, starts: Sequence[int], at: int) -> Iterator[Splice]:
    """Yield the replacements of whole lines. `starts` are the offsets of the file's lines, `at` is the first one."""
    for is_context, group in groupby(hunk.lines, key=lambda line: line[0] == " "):
        lines = list(group)
        end = at + sum(sign != "+" for sign, _ in lines)
        if not is_context:
            yield Splice(starts[at], starts[end], "".join(f"{text}\n" for sign, text in lines if sign == "+"))
        at = end
