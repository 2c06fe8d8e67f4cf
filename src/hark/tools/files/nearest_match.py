"""Explains why a text was not found in a file, or found more than once: shows the passages and the difference."""

import re
from collections.abc import Sequence

from hark.tools.files.whitespace_difference import MAX_LINE_CHARACTERS, explain_whitespace, show_invisible

MAX_COMPARED_CHARACTERS = 500_000
MAX_TRIGRAMS = 60
MAX_SHOWN_LINES = 12
MAX_NAMED_LINES = 12
MIN_SIMILARITY = 0.5
_NUMBERED = re.compile(r"\s*\d+\t")
_INVALID_BYTE = re.compile("[\udc80-\udcff]")


def find_overlapping(text: str, wanted: str, start: int = 0, end: int | None = None) -> list[int]:
    """Return the offsets where the wanted text occurs. Matches may overlap. Stops after `MAX_NAMED_LINES + 1`."""
    found: list[int] = []
    while len(found) <= MAX_NAMED_LINES and (start := text.find(wanted, start, end)) >= 0:
        found.append(start)
        start += 1
    return found


def name_lines(indexes: Sequence[int]) -> str:
    """Format the numbers of the lines with these indexes, up to `MAX_NAMED_LINES`."""
    names = ", ".join(str(at + 1) for at in indexes[:MAX_NAMED_LINES])
    return f"{names}, ..." if len(indexes) > MAX_NAMED_LINES else names


def explain_mismatch(text: str, wanted: str, *, are_whole_lines: bool = False) -> str:
    """Explain why the wanted text was not found in the text, and quote lines of the text."""
    wanted_lines = wanted.split("\n")
    if all(_NUMBERED.match(line) for line in wanted_lines if line.strip()) and wanted.strip():
        return "Your text contains line numbers, as read shows them. They are not part of the file: remove them."
    if explanation := explain_whitespace(text, wanted, are_whole_lines=are_whole_lines):
        return explanation
    lines = text.split("\n")
    near = _find_similar(lines, wanted_lines) if len(text) <= MAX_COMPARED_CHARACTERS and wanted.strip() else None
    if near is None:
        return "The file has no similar text. Read it again."
    shown = lines[near - 1 : near - 1 + min(len(wanted_lines), MAX_SHOWN_LINES)]
    numbered = [f"{number:>6}\t{_show_line(line)}" for number, line in enumerate(shown, near)]
    if any(map(_INVALID_BYTE.search, shown)):
        numbered.append("\\xNN is a byte that is not valid UTF-8. Choose text without it, or use a shell command.")
    return "\n".join([f"The most similar passage, at line {near}:", *numbered])


def _show_line(line: str) -> str:
    return show_invisible(line.rstrip()[:MAX_LINE_CHARACTERS])


def _find_similar(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return the line where the most similar passage starts. The search uses the longest of the wanted lines."""
    anchor = max(range(len(wanted)), key=lambda at: len(wanted[at].strip()))
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
