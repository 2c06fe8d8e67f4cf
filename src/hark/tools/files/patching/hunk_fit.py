"""Where a hunk fits into a file's lines, and the lines that come of it."""

import contextlib
from collections.abc import Callable, Sequence

from msgspec import Struct, field

from hark.protocol.tool import ToolError
from hark.tools.files.nearest_match import explain, squeezed
from hark.tools.files.patching.format import Hunk

Likeness = Callable[[str], str]


LEVELS: tuple[tuple[str, Likeness], ...] = (
    ("", str),
    ("white space at the lines' ends differs", str.rstrip),
    ("the indentation differs", str.strip),
    ("white space differs", squeezed),
)


class Patched(Struct):
    """A file's lines, each with its end, after all hunks; and what was not as the patch said."""

    lines: list[str]
    notes: list[str] = field(default_factory=list[str])


def split_lines(text: str) -> list[str]:
    """Return a text's lines with their ends; only a newline ends a line."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def apply_hunks(text: str, hunks: Sequence[Hunk], newline: str) -> Patched:
    """Return the file after the hunks, which come in the file's order.

    Lines that stay are kept as the file has them, new ones get this line end, and the end of the file stays as it is
    unless a hunk says otherwise.

    Raises:
        ToolError: A hunk does not fit. The text says which, and what is there instead.
    """
    patched = Patched(split_lines(text))
    is_ended = not text or text.endswith("\n")
    plain = [line.rstrip("\r\n") for line in patched.lines]
    done = drift = 0
    for number, hunk in enumerate(hunks, 1):
        name = f"Hunk {number} of {len(hunks)}" + (f" (at line {hunk.start})" if hunk.start else "")
        at, note = _place(plain, hunk, done, drift, name)
        if note:
            patched.notes.append(f"{name}: {note}")
        if hunk.start and hunk.old:
            drift = at - (hunk.start - 1)
        new = _merged(patched.lines[at : at + len(hunk.old)], hunk, newline)
        patched.lines[at : at + len(hunk.old)] = new
        plain[at : at + len(hunk.old)] = [line.rstrip("\r\n") for line in new]
        done = at + len(new)
        if hunk.is_new_unended or hunk.is_old_unended:
            is_ended = not hunk.is_new_unended
    _end_lines(patched.lines, newline, is_ended)
    return patched


def _merged(there: Sequence[str], hunk: Hunk, newline: str) -> list[str]:
    lines: list[str] = []
    at = 0
    for sign, text in hunk.lines:
        if sign == "+":
            lines.append(text.rstrip("\r") + newline)
            continue
        if sign == " ":
            lines.append(there[at])
        at += 1
    return lines


def _end_lines(lines: list[str], newline: str, is_ended: bool) -> None:
    for at, line in enumerate(lines):
        if not line.endswith("\n"):
            lines[at] = line + newline
    if lines and not is_ended:
        lines[-1] = lines[-1].removesuffix("\n").removesuffix("\r")


def _place(lines: list[str], hunk: Hunk, done: int, drift: int, name: str) -> tuple[int, str]:
    """Return where the hunk's old lines begin, and what is to be said about it."""
    after = _behind_headings(lines, hunk, done, name)
    old = [line.rstrip("\r") for line in hunk.old]
    expected = None if hunk.start is None else hunk.start - 1 + drift
    if not old:
        return _insertion(hunk, len(lines), after, expected), ""
    if expected is not None and expected >= after and lines[expected : expected + len(old)] == old:
        return expected, ""
    for note, likeness in LEVELS:
        places = _places([likeness(line) for line in lines], [likeness(line) for line in old], after)
        if places:
            return _chosen(places[::-1] if hunk.is_at_end else places, expected, hunk, note)
    raise ToolError(f"{name} does not fit. {_why(lines, old, hunk, after)}")


def _chosen(places: Sequence[int], expected: int | None, hunk: Hunk, note: str) -> tuple[int, str]:
    if expected is not None:
        at = min(places, key=lambda place: abs(place - expected))
        moved = f"fits at line {at + 1}, not {expected + 1}" if at != expected else ""
        return at, "; ".join(filter(None, (moved, note)))
    if len(places) > 1 and not hunk.headings and not hunk.is_at_end:
        several = ", ".join(str(place + 1) for place in places[:5])
        return places[0], "; ".join(filter(None, (f"fits at lines {several}; the first was taken", note)))
    return places[0], note


def _insertion(hunk: Hunk, count: int, after: int, expected: int | None) -> int:
    """Return where lines go that have no context: behind the line named, behind the heading, or at the end."""
    if expected is not None:
        return max(after, min(expected + 1, count))
    return after if hunk.headings and not hunk.is_at_end else count


def _behind_headings(lines: Sequence[str], hunk: Hunk, done: int, name: str) -> int:
    after = done
    for heading in hunk.headings:
        wanted = heading.strip()
        places = [at for at in range(after, len(lines)) if lines[at].strip() == wanted] or [
            at for at in range(after, len(lines)) if wanted in lines[at]
        ]
        if not places:
            why = explain(lines, [heading])
            raise ToolError(
                f"{name} does not fit: its heading {heading!r} is not in the file behind line {after}. {why}"
            )
        after = places[0] + 1
    return after


def _places(lines: list[str], old: list[str], after: int) -> list[int]:
    """Return where the old lines are, found by the longest of them, which is likely to be rare."""
    anchor = max(range(len(old)), key=lambda at: len(old[at]))
    places: list[int] = []
    at = after + anchor
    with contextlib.suppress(ValueError):  # no more of it
        while True:
            at = lines.index(old[anchor], at) + 1
            start = at - 1 - anchor
            if lines[start : start + len(old)] == old:
                places.append(start)
    return places


def _why(lines: list[str], old: list[str], hunk: Hunk, after: int) -> str:
    if _places(lines, old, 0):
        return f"Its lines are there, but before line {after + 1}: hunks must come in the order of the file."
    new = [line.rstrip("\r") for line in hunk.new]
    if hunk.new and any(sign == "+" for sign, _ in hunk.lines) and (made := _places(lines, new, 0)):
        return f"It seems to be made already, at line {made[0] + 1}."
    if not lines:
        return "The file is empty."
    return explain(lines, old)
