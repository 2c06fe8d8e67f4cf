"""Finds the one place in a file where each hunk applies, and refuses hunks that could apply elsewhere."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from hark.protocol.tool import ToolError
from hark.tools.files.nearest_match import explain_mismatch, find_overlapping, name_lines
from hark.tools.files.patching.format import Hunk

ORDER_RULE = "Its lines are not after the previous hunk. Hunks must be in the order of the file and must not overlap."


class LineIndex:
    """Lines that are searched for sequences of whole lines in linear time."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
        self._text = _join(lines)

    def find(self, wanted: Sequence[str], first: int = 0, end: int | None = None) -> list[int]:
        """Return where the wanted lines occur in the range of lines. Stops after a few matches."""
        stop = self.starts[len(self.lines) if end is None else end] + 1
        found = find_overlapping(self._text, _join(wanted), self.starts[first], stop)
        return [bisect_left(self.starts, at) for at in found]


class HunkLocator:
    """Locates the hunks of one file, in order. All indexes and line numbers refer to the unpatched file.

    Line numbers count only if every hunk of the file fits at its number, because one wrong number makes the others
    doubtful. Without them, the lines of a hunk must occur exactly once.
    """

    def __init__(self, text: str, hunks: Sequence[Hunk], *, is_ended: bool) -> None:
        self._index = LineIndex(text.split("\n")[:-1])
        self._lines = self._index.lines
        self.starts = self._index.starts
        self._is_ended = is_ended
        self._are_numbers_right = self._check_numbers(hunks)
        self._end_of_previous = 0
        self._shift = 0

    def locate(self, hunk: Hunk, name: str) -> tuple[int, str]:
        """Return the index of the hunk's first old line, and a note if the hunk did not match exactly.

        Raises:
            ToolError: The hunk does not apply, or applies in several places.
        """
        note = ""
        if self._are_numbers_right and hunk.old_index is not None:
            at = hunk.old_index
        elif hunk.old:
            at, note = self._search(hunk, name)
        else:
            at = self._insertion_index(hunk, name)
        if at < self._end_of_previous:
            raise ToolError(f"{name} does not apply. {ORDER_RULE}")
        self._end_of_previous = at + len(hunk.old)
        if hunk.old_index is not None:
            shift, self._shift = self._shift, at - hunk.old_index
            if self._shift not in (0, shift):
                note = f"applied at line {at + 1} instead of {hunk.old_index + 1}{'; ' if note else ''}{note}"
        return at, note

    def _check_numbers(self, hunks: Sequence[Hunk]) -> bool:
        """Return whether each numbered hunk fits at its line, and its old and new line numbers agree."""
        added = 0
        for hunk in hunks:
            if hunk.old_index is not None and not self._fits(hunk, hunk.old_index, added):
                return False
            added += len(hunk.new) - len(hunk.old)
        return True

    def _fits(self, hunk: Hunk, at: int, added: int) -> bool:
        if hunk.new_index != at + added or bool(hunk.old) != bool(hunk.old_count):
            return False
        end = at + len(hunk.old)
        if end == len(self._lines):
            is_end_right = self._is_ended or hunk.is_old_unended
        else:
            is_end_right = end < len(self._lines) and not hunk.needs_file_end
        return is_end_right and self._lines[at:end] == hunk.old

    def _search(self, hunk: Hunk, name: str) -> tuple[int, str]:
        # A line number may refer to any place in the file, also before the previous hunk.
        file_end = len(self._lines) - len(hunk.old)
        first = 0 if hunk.old_index is not None else max(self._end_of_previous, file_end if hunk.is_at_end else 0)
        matches, note = self._index.find(hunk.old, first), ""
        if not matches:
            stripped = LineIndex([line.rstrip(" \t") for line in self._lines])
            matches = stripped.find([line.rstrip(" \t") for line in hunk.old], first)
            note = "spaces or tabs at line ends differ"
        if not matches or (len(matches) == 1 and hunk.is_at_end and matches != [file_end]):
            raise ToolError(f"{name} does not apply. {self._explain(hunk)}")
        if len(matches) > 1 and hunk.headings:
            matches = self._index.find(hunk.old, *self._block_below_headings(hunk, name)) or matches
        if len(matches) > 1:
            raise ToolError(
                f"{name} is ambiguous: its lines occur at lines {name_lines(matches)}. Include more of the "
                "surrounding lines, or a heading: @@ and a complete earlier line, such as the function's first line."
            )
        after = self._end_of_previous
        for heading in hunk.headings:
            after = self._find_heading(heading, after, matches[0], name)[0] + 1
        return matches[0], note

    def _insertion_index(self, hunk: Hunk, name: str) -> int:
        """Return where to insert lines without context: after the heading, at the end, or in an empty file."""
        is_numbered = hunk.old_index is not None
        if not self._lines or (hunk.is_at_end and not is_numbered):
            return len(self._lines)
        if hunk.headings and not is_numbered:
            return self._block_below_headings(hunk, name)[0]
        why = "its line numbers don't fit the file" if is_numbered else "it has no line numbers"
        raise ToolError(f"{name} adds lines without context, and {why}, so their place is unknown. Add context lines.")

    def _block_below_headings(self, hunk: Hunk, name: str) -> tuple[int, int]:
        """Return the range of the lines that are indented below the last heading. Each heading must be unique."""
        first, end = self._end_of_previous, len(self._lines)
        for heading in hunk.headings:
            found = self._find_heading(heading, first, end, name)
            if len(found) > 1:
                raise ToolError(
                    f"{name} is ambiguous: its heading {heading!r} occurs at lines {name_lines(found)}. "
                    "Put a heading that occurs once before it, or include more context lines."
                )
            first = found[0] + 1
            depth = _indentation(self._lines[found[0]])
            block = enumerate(self._lines[first:end], first)
            end = next((at for at, line in block if line.strip() and _indentation(line) <= depth), end)
        return first, end

    def _find_heading(self, heading: str, first: int, end: int, name: str) -> list[int]:
        found = [at for at in range(first, end) if self._lines[at].strip() == heading]
        if not found:
            why = explain_mismatch("\n".join(self._lines), heading, are_whole_lines=True)
            raise ToolError(
                f"{name} does not apply: its heading {heading!r} was not found as a complete line before it. {why}"
            )
        return found

    def _explain(self, hunk: Hunk) -> str:
        if self._index.find(hunk.old):
            return "Its lines are not at the end of the file." if hunk.is_at_end else ORDER_RULE
        if hunk.new and (applied := self._index.find(hunk.new)):
            return f"It seems to have been applied already, at line {applied[0] + 1}."
        if not self._lines:
            return "The file is empty."
        return explain_mismatch("\n".join(self._lines), "\n".join(hunk.old), are_whole_lines=True)


def _join(lines: Sequence[str]) -> str:
    """Return a text in which whole lines can be searched: each has a newline before and after it."""
    return "\n" + "".join(f"{line}\n" for line in lines)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
