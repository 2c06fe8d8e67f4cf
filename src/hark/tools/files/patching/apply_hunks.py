"""Finds where hunks apply in a file's lines, and applies them."""

import contextlib
from collections.abc import Callable, Sequence

from msgspec import Struct, field

from hark.protocol.tool import ToolError
from hark.tools.files.nearest_match import explain_mismatch, remove_whitespace
from hark.tools.files.patching.format import Hunk

LineNormalizer = Callable[[str], str]


MATCH_LEVELS: tuple[tuple[str, LineNormalizer], ...] = (
    ("", str),
    ("whitespace at line ends differs", str.rstrip),
    ("the indentation differs", str.strip),
    ("whitespace differs", remove_whitespace),
)


class PatchedText(Struct):
    """The lines of a patched file with their line endings, and notes on how it deviates from the patch."""

    lines: list[str]
    notes: list[str] = field(default_factory=list[str])


def split_lines(text: str) -> list[str]:
    """Split a text into lines with their line endings. Only a newline ends a line."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def apply_hunks(text: str, hunks: Sequence[Hunk], newline: str) -> PatchedText:
    """Apply the hunks, which must be in file order, and return the patched text.

    Unchanged lines keep their line endings, and new lines get `newline`. Only a hunk can change the end of the file.

    Raises:
        ToolError: A hunk does not apply. The error's text names the hunk and shows lines of the file.
    """
    patched = PatchedText(split_lines(text))
    ends_with_newline = not text or text.endswith("\n")
    plain = [line.rstrip("\r\n") for line in patched.lines]
    processed = drift = 0
    for number, hunk in enumerate(hunks, 1):
        name = f"Hunk {number} of {len(hunks)}" + (f" (at line {hunk.start})" if hunk.start else "")
        at, note = _locate_hunk(plain, hunk, processed, drift, name)
        if note:
            patched.notes.append(f"{name}: {note}")
        if hunk.start and hunk.old:
            drift = at - (hunk.start - 1)
        new = _merge_hunk(patched.lines[at : at + len(hunk.old)], hunk, newline)
        patched.lines[at : at + len(hunk.old)] = new
        plain[at : at + len(hunk.old)] = [line.rstrip("\r\n") for line in new]
        processed = at + len(new)
        if hunk.is_new_unended or hunk.is_old_unended:
            ends_with_newline = not hunk.is_new_unended
    _fix_line_endings(patched.lines, newline, ends_with_newline)
    return patched


def _merge_hunk(old_lines: Sequence[str], hunk: Hunk, newline: str) -> list[str]:
    lines: list[str] = []
    at = 0
    for sign, text in hunk.lines:
        if sign == "+":
            lines.append(text.rstrip("\r") + newline)
            continue
        if sign == " ":
            lines.append(old_lines[at])
        at += 1
    return lines


def _fix_line_endings(lines: list[str], newline: str, ends_with_newline: bool) -> None:
    for at, line in enumerate(lines):
        if not line.endswith("\n"):
            lines[at] = line + newline
    if lines and not ends_with_newline:
        lines[-1] = lines[-1].removesuffix("\n").removesuffix("\r")


def _locate_hunk(lines: list[str], hunk: Hunk, processed: int, drift: int, name: str) -> tuple[int, str]:
    """Return the index of the hunk's first old line, and a note if the hunk did not match exactly."""
    after = _skip_headings(lines, hunk, processed, name)
    old = [line.rstrip("\r") for line in hunk.old]
    expected = None if hunk.start is None else hunk.start - 1 + drift
    if not old:
        return _insertion_index(hunk, len(lines), after, expected), ""
    if expected is not None and expected >= after and lines[expected : expected + len(old)] == old:
        return expected, ""
    for note, normalize in MATCH_LEVELS:
        places = _find_all([normalize(line) for line in lines], [normalize(line) for line in old], after)
        if places:
            return _choose_position(places[::-1] if hunk.is_at_end else places, expected, hunk, note)
    raise ToolError(f"{name} does not apply. {_explain_failure(lines, old, hunk, after)}")


def _choose_position(positions: Sequence[int], expected: int | None, hunk: Hunk, note: str) -> tuple[int, str]:
    if expected is not None:
        at = min(positions, key=lambda place: abs(place - expected))
        moved = f"applied at line {at + 1} instead of {expected + 1}" if at != expected else ""
        return at, "; ".join(filter(None, (moved, note)))
    if len(positions) > 1 and not hunk.headings and not hunk.is_at_end:
        several = ", ".join(str(place + 1) for place in positions[:5])
        return positions[0], "; ".join(filter(None, (f"matches at lines {several}; applied at the first", note)))
    return positions[0], note


def _insertion_index(hunk: Hunk, count: int, after: int, expected: int | None) -> int:
    """Return where to insert lines without context: after the given line, after the heading, or at the end."""
    if expected is not None:
        return max(after, min(expected + 1, count))
    return after if hunk.headings and not hunk.is_at_end else count


def _skip_headings(lines: Sequence[str], hunk: Hunk, processed: int, name: str) -> int:
    after = processed
    for heading in hunk.headings:
        wanted = heading.strip()
        positions = [at for at in range(after, len(lines)) if lines[at].strip() == wanted] or [
            at for at in range(after, len(lines)) if wanted in lines[at]
        ]
        if not positions:
            why = explain_mismatch(lines, [heading])
            raise ToolError(f"{name} does not apply: its heading {heading!r} was not found after line {after}. {why}")
        after = positions[0] + 1
    return after


def _find_all(lines: list[str], old: list[str], after: int) -> list[int]:
    """Return all indexes where the old lines occur. Searches by the longest line, which is likely to be rare."""
    anchor = max(range(len(old)), key=lambda at: len(old[at]))
    positions: list[int] = []
    at = after + anchor
    with contextlib.suppress(ValueError):  # no more occurrences
        while True:
            at = lines.index(old[anchor], at) + 1
            start = at - 1 - anchor
            if lines[start : start + len(old)] == old:
                positions.append(start)
    return positions


def _explain_failure(lines: list[str], old: list[str], hunk: Hunk, after: int) -> str:
    if _find_all(lines, old, 0):
        return f"Its lines occur only before line {after + 1}. Hunks must be in the order of the file."
    new = [line.rstrip("\r") for line in hunk.new]
    if hunk.new and any(sign == "+" for sign, _ in hunk.lines) and (applied := _find_all(lines, new, 0)):
        return f"It seems to have been applied already, at line {applied[0] + 1}."
    if not lines:
        return "The file is empty."
    return explain_mismatch(lines, old)
