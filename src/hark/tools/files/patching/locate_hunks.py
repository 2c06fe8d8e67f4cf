"""Finds the one place in a file where each hunk applies, and refuses hunks that could apply elsewhere."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from hark.protocol.tool import ToolError
from hark.tools.files.nearest_match import explain_mismatch
from hark.tools.files.patching.format import Hunk

MAX_NAMED_MATCHES = 5
ORDER_RULE = "Hunks must be in the order of the file and must not overlap."


class LineIndex:
    """Lines that are searched for sequences of whole lines in linear time."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.text = "\n" + "".join(f"{line}\n" for line in lines)
        self.starts = list(accumulate((len(line) + 1 for line in lines), initial=0))

    def find(self, old: Sequence[str], first: int, end: int) -> list[int]:
        """Return where the old lines occur in the range of lines. Stops after a few matches."""
        wanted = _whole_lines(old)
        found: list[int] = []
        at = self.starts[first] - 1
        while len(found) <= MAX_NAMED_MATCHES:
            at = self.text.find(wanted, at + 1, self.starts[end] + 1)
            if at < 0:
                break
            found.append(bisect_left(self.starts, at))
        return found


class HunkLocator:
    """Locates the hunks of one file, in order. All indexes and line numbers refer to the unpatched file.

    Line numbers count only if every hunk of the file fits at its number, because one wrong number makes the others
    doubtful. Without them, the lines of a hunk must occur exactly once.
    """

    def __init__(self, index: LineIndex, hunks: Sequence[Hunk], *, is_ended: bool) -> None:
        self._exact = index
        self._is_ended = is_ended
        self._count = len(index.lines)
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
            raise ToolError(f"{name} does not apply: its lines occur only before line {at + 2}. {ORDER_RULE}")
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
        is_end_right = not hunk.needs_file_end
        if end == self._count:
            is_end_right = self._is_ended or hunk.is_old_unended
        return end <= self._count and is_end_right and list(self._exact.lines[at:end]) == hunk.old

    def _search(self, hunk: Hunk, name: str) -> tuple[int, str]:
        # A line number may refer to any place in the file, also before the previous hunk.
        is_numbered = hunk.old_index is not None
        file_end = self._count - len(hunk.old)
        first = 0 if is_numbered else max(self._end_of_previous, file_end if hunk.is_at_file_end else 0)
        matches, note = self._exact.find(hunk.old, first, self._count), ""
        if not matches:
            stripped = LineIndex([_strip_end(line) for line in self._exact.lines])
            matches = stripped.find([_strip_end(line) for line in hunk.old], first, self._count)
            note = "spaces or tabs at line ends differ"
        if not matches or (len(matches) == 1 and hunk.is_at_file_end and matches != [file_end]):
            raise ToolError(f"{name} does not apply. {self._explain(hunk)}")
        if len(matches) > 1 and hunk.headings:
            first, end = self._block_after_headings(hunk, name)
            matches = self._exact.find(hunk.old, first, end) or matches
        if len(matches) > 1:
            raise ToolError(
                f"{name} is ambiguous: its lines occur at lines {_name_lines(matches)}. Include more of the "
                "surrounding lines, or a heading: @@ and a complete earlier line, such as the function's first line."
            )
        self._require_headings(hunk, matches[0], name)
        return matches[0], note

    def _insertion_index(self, hunk: Hunk, name: str) -> int:
        """Return where to insert lines without context: after the heading, at the end, or in an empty file."""
        is_numbered = hunk.old_index is not None
        if not self._count or (hunk.is_at_file_end and not is_numbered):
            return self._count
        if hunk.headings and not is_numbered:
            return self._block_after_headings(hunk, name)[0]
        why = "its line numbers don't fit the file" if is_numbered else "it has no line numbers"
        raise ToolError(f"{name} adds lines without context, and {why}, so their place is unknown. Add context lines.")

    def _block_after_headings(self, hunk: Hunk, name: str) -> tuple[int, int]:
        """Return the range of the lines that are indented below the last heading. Each heading must be unique."""
        first, end = self._end_of_previous, self._count
        for heading in hunk.headings:
            found = [at for at in range(first, end) if self._exact.lines[at].strip() == heading]
            if not found:
                raise ToolError(f"{name} does not apply: {self._explain_heading(heading)}")
            if len(found) > 1:
                raise ToolError(
                    f"{name} is ambiguous: its heading {heading!r} occurs at lines {_name_lines(found)}. "
                    "Put a heading that occurs once before it, or include more context lines."
                )
            first = found[0] + 1
            end = next((at for at in range(first, end) if not self._is_deeper(at, found[0])), end)
        return first, end

    def _is_deeper(self, at: int, heading_at: int) -> bool:
        line, heading = self._exact.lines[at], self._exact.lines[heading_at]
        return not line.strip() or _indentation(line) > _indentation(heading)

    def _require_headings(self, hunk: Hunk, at: int, name: str) -> None:
        """Check that the headings are complete lines before the hunk, in their order."""
        after = self._end_of_previous
        for heading in hunk.headings:
            found = next((line for line in range(after, at) if self._exact.lines[line].strip() == heading), None)
            if found is None:
                raise ToolError(f"{name} does not apply: {self._explain_heading(heading)}")
            after = found + 1

    def _explain_heading(self, heading: str) -> str:
        why = explain_mismatch(self._exact.text[1:-1], heading, are_whole_lines=True)
        return f"its heading {heading!r} was not found as a complete line before it. {why}"

    def _explain(self, hunk: Hunk) -> str:
        if hunk.is_at_file_end and self._exact.find(hunk.old, 0, self._count):
            return "Its lines are not at the end of the file."
        if self._exact.find(hunk.old, 0, self._count):
            return f"Its lines occur only before line {self._end_of_previous + 1}. {ORDER_RULE}"
        if hunk.new and hunk.new != hunk.old and (applied := self._exact.find(hunk.new, 0, self._count)):
            return f"It seems to have been applied already, at line {applied[0] + 1}."
        if not self._count:
            return "The file is empty."
        return explain_mismatch(self._exact.text[1:-1], "\n".join(hunk.old), are_whole_lines=True)


def _whole_lines(lines: Sequence[str]) -> str:
    return "\n" + "".join(f"{line}\n" for line in lines)


def _strip_end(line: str) -> str:
    return line.rstrip(" \t")


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _name_lines(indexes: Sequence[int]) -> str:
    names = ", ".join(str(at + 1) for at in indexes[:MAX_NAMED_MATCHES])
    return f"{names}, ..." if len(indexes) > MAX_NAMED_MATCHES else names
