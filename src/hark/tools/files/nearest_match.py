"""Why a text is not found in a file: what is there instead, and what differs."""

import re
from collections.abc import Sequence

from msgspec import Struct

SQUEEZED_CHARACTERS = 1_000_000
COMPARED_CHARACTERS = 500_000
GRAMS = 60
SHOWN_LINES = 12
LINE_CHARACTERS = 200
ALIKE = 0.5
_NUMBERED = re.compile(r"\s*\d+\t")


class Near(Struct, frozen=True):
    """Where the nearest passage begins (the first line is 1), and whether only blanks differ."""

    line: int
    is_blanks_only: bool = False


def explain(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """Say what is there instead of the wanted lines. Lines are without their ends."""
    if all(_NUMBERED.match(line) for line in wanted if line.strip()) and any(line.strip() for line in wanted):
        return "It begins with line numbers, as read shows them: they are not in the file. Leave them out."
    near = nearest(lines, wanted)
    if near is None:
        return "Nothing there is like it: read the file again."
    if near.is_blanks_only:
        ours, theirs = _first_difference(lines[near.line - 1 :], wanted)
        return (
            f"At line {near.line} only the white space differs ({_what(ours, theirs)}).\n"
            f"Yours:       {_visible(theirs)}\nIn the file: {_visible(ours)}\n"
            "Give it exactly as the file has it (→ is a tab, · a blank)."
        )
    return f"The nearest passage, at line {near.line}:\n{numbered(lines, near.line, len(wanted))}"


def nearest(lines: Sequence[str], wanted: Sequence[str]) -> Near | None:
    """Return the passage that is most like the wanted lines, if any is."""
    length = sum(map(len, lines))
    if length > SQUEEZED_CHARACTERS or not any(line.strip() for line in wanted):
        return None
    line = _squeezed_place([squeezed(line) for line in lines], [squeezed(line) for line in wanted])
    if line is not None:
        return Near(line, is_blanks_only=True)
    line = _alike_place(lines, wanted) if length <= COMPARED_CHARACTERS else None
    return Near(line) if line is not None else None


def numbered(lines: Sequence[str], first: int, count: int) -> str:
    """Return some lines with their numbers, as read shows them."""
    shown = lines[first - 1 : first - 1 + min(max(count, 1), SHOWN_LINES)]
    return "\n".join(f"{number:>6}\t{line.rstrip()[:LINE_CHARACTERS]}" for number, line in enumerate(shown, first))


def squeezed(line: str) -> str:
    """Return a line without its blanks."""
    return "".join(line.split())


def _squeezed_place(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return where the lines are the same but for blanks; the first and the last may be a part of a line."""
    first, *middle = wanted
    last = middle.pop() if middle else ""
    if not middle and not last:
        return next((at for at, line in enumerate(lines, 1) if first and first in line), None)
    for at in range(len(lines) - len(wanted) + 1):
        end = at + len(wanted) - 1
        if lines[at].endswith(first) and lines[end].startswith(last) and list(lines[at + 1 : end]) == middle:
            return at + 1
    return None


def _alike_place(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return where the line is that is most like the longest wanted one, counted back to the first."""
    anchor = max(range(len(wanted)), key=lambda at: len(squeezed(wanted[at])))
    grams = _grams(wanted[anchor])

    def likeness(at: int) -> float:
        line = lines[at].lower()
        here = sum(gram in line for gram in grams)
        return 2 * here / (len(grams) + min(max(1, len(line.strip()) - 2), GRAMS))

    best = max(range(len(lines)), key=likeness, default=None)
    if best is None or likeness(best) < ALIKE:
        return None
    return max(1, best - anchor + 1)


def _grams(line: str) -> list[str]:
    """Return what stands in a line side by side, three letters each."""
    text = line.lower().strip()
    return [text[at : at + 3] for at in range(min(max(1, len(text) - 2), GRAMS))]


def _first_difference(lines: Sequence[str], wanted: Sequence[str]) -> tuple[str, str]:
    for number, (ours, theirs) in enumerate(zip(lines, wanted, strict=False)):
        is_part = number in (0, len(wanted) - 1) and theirs in ours
        if ours != theirs and not is_part:
            return ours, theirs
    return lines[0], wanted[0]


def _what(ours: str, theirs: str) -> str:
    if ours.rstrip("\r") == theirs.rstrip("\r"):
        return "a carriage return at the line's end"
    if ours.rstrip() == theirs.rstrip():
        return "at the line's end"
    if ours.expandtabs(4) == theirs.expandtabs(4) or ("\t" in ours) != ("\t" in theirs):
        return "tabs and blanks"
    if ours.strip() == theirs.strip():
        return "the indentation"
    return "blanks inside the line"


def _visible(line: str) -> str:
    start = len(line) - len(line.lstrip())
    end = len(line.rstrip())
    parts = (_marked(line[:start]), line[start:end].replace("\t", "→"), _marked(line[max(start, end) :]))
    return "".join(parts)[:LINE_CHARACTERS]


def _marked(blanks: str) -> str:
    return blanks.replace(" ", "·").replace("\t", "→").replace("\r", "␍")
