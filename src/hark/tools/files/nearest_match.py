"""Explains why a text was not found in a file: shows the most similar passage and the difference."""

import re
from collections.abc import Sequence

from msgspec import Struct

MAX_FILE_CHARACTERS = 1_000_000
MAX_COMPARED_CHARACTERS = 500_000
MAX_TRIGRAMS = 60
MAX_SHOWN_LINES = 12
MAX_LINE_CHARACTERS = 200
MIN_SIMILARITY = 0.5
_NUMBERED = re.compile(r"\s*\d+\t")


class NearestMatch(Struct, frozen=True):
    """The most similar passage: its first line (counted from 1), and whether only whitespace differs."""

    line: int
    is_blanks_only: bool = False


def explain_mismatch(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """Explain why the wanted lines were not found, and quote lines of the file. All lines are without line endings."""
    if all(_NUMBERED.match(line) for line in wanted if line.strip()) and any(line.strip() for line in wanted):
        return "Your text contains line numbers, as read shows them. They are not part of the file: remove them."
    near = find_nearest(lines, wanted)
    if near is None:
        return "The file has no similar text. Read it again."
    if near.is_blanks_only:
        ours, theirs = _first_different_lines(lines[near.line - 1 :], wanted)
        return (
            f"At line {near.line} only whitespace differs ({_describe_whitespace(ours, theirs)}).\n"
            f"Yours:       {_show_whitespace(theirs)}\nIn the file: {_show_whitespace(ours)}\n"
            "Repeat it exactly as in the file (→ is a tab, · is a space)."
        )
    return f"The most similar passage, at line {near.line}:\n{format_numbered(lines, near.line, len(wanted))}"


def find_nearest(lines: Sequence[str], wanted: Sequence[str]) -> NearestMatch | None:
    """Return the passage most similar to the wanted lines, or None if no passage is similar."""
    length = sum(map(len, lines))
    if length > MAX_FILE_CHARACTERS or not any(line.strip() for line in wanted):
        return None
    line = _find_ignoring_whitespace(
        [remove_whitespace(line) for line in lines], [remove_whitespace(line) for line in wanted]
    )
    if line is not None:
        return NearestMatch(line, is_blanks_only=True)
    line = _find_similar(lines, wanted) if length <= MAX_COMPARED_CHARACTERS else None
    return NearestMatch(line) if line is not None else None


def format_numbered(lines: Sequence[str], first: int, count: int) -> str:
    """Format lines with their numbers, as the read tool shows them."""
    shown = lines[first - 1 : first - 1 + min(max(count, 1), MAX_SHOWN_LINES)]
    return "\n".join(f"{number:>6}\t{line.rstrip()[:MAX_LINE_CHARACTERS]}" for number, line in enumerate(shown, first))


def remove_whitespace(line: str) -> str:
    """Return a line without any whitespace."""
    return "".join(line.split())


def _find_ignoring_whitespace(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return where a passage starts that differs only in whitespace. Its first and last lines may match partly."""
    first, *middle = wanted
    last = middle.pop() if middle else ""
    if not middle and not last:
        return next((at for at, line in enumerate(lines, 1) if first and first in line), None)
    for at in range(len(lines) - len(wanted) + 1):
        end = at + len(wanted) - 1
        if lines[at].endswith(first) and lines[end].startswith(last) and list(lines[at + 1 : end]) == middle:
            return at + 1
    return None


def _find_similar(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return the line where the most similar passage starts. The search uses the longest of the wanted lines."""
    anchor = max(range(len(wanted)), key=lambda at: len(remove_whitespace(wanted[at])))
    grams = _trigrams(wanted[anchor])

    def similarity(at: int) -> float:
        line = lines[at].lower()
        here = sum(gram in line for gram in grams)
        return 2 * here / (len(grams) + min(max(1, len(line.strip()) - 2), MAX_TRIGRAMS))

    best = max(range(len(lines)), key=similarity, default=None)
    if best is None or similarity(best) < MIN_SIMILARITY:
        return None
    return max(1, best - anchor + 1)


def _trigrams(line: str) -> list[str]:
    """Return the trigrams of a line: all sequences of three adjacent characters, up to a limit."""
    text = line.lower().strip()
    return [text[at : at + 3] for at in range(min(max(1, len(text) - 2), MAX_TRIGRAMS))]


def _first_different_lines(lines: Sequence[str], wanted: Sequence[str]) -> tuple[str, str]:
    for number, (file_line, wanted_line) in enumerate(zip(lines, wanted, strict=False)):
        is_part = number in (0, len(wanted) - 1) and wanted_line in file_line
        if file_line != wanted_line and not is_part:
            return file_line, wanted_line
    return lines[0], wanted[0]


def _describe_whitespace(file_line: str, wanted_line: str) -> str:
    if file_line.rstrip("\r") == wanted_line.rstrip("\r"):
        return "a carriage return at the end of the line"
    if file_line.rstrip() == wanted_line.rstrip():
        return "at the end of the line"
    if file_line.expandtabs(4) == wanted_line.expandtabs(4) or ("\t" in file_line) != ("\t" in wanted_line):
        return "tabs versus spaces"
    if file_line.strip() == wanted_line.strip():
        return "the indentation"
    return "spaces inside the line"


def _show_whitespace(line: str) -> str:
    start = len(line) - len(line.lstrip())
    end = len(line.rstrip())
    parts = (
        _mark_whitespace(line[:start]),
        line[start:end].replace("\t", "→"),
        _mark_whitespace(line[max(start, end) :]),
    )
    return "".join(parts)[:MAX_LINE_CHARACTERS]


def _mark_whitespace(whitespace: str) -> str:
    return whitespace.replace(" ", "·").replace("\t", "→").replace("\r", "␍")
