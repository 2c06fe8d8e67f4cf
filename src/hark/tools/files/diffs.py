"""What changed between two texts, as a short unified diff, found in bounded time."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

CONTEXT_LINES = 3
SHOWN_LINES = 120
LINE_CHARACTERS = 400
COMPARED = 40_000
COMPARED_CHARACTERS = 1_000_000
PIECE_CHARACTERS = 65_536

Block = tuple[int, int, int, int]
"""A replacement: old lines from, to; new lines from, to."""


def unified(old: str, new: str, name: str) -> str:
    """Return the diff with a heading, cut when it is long; "" when nothing changed."""
    if old == new:
        return ""
    first, last = _common_ends(old, new)
    number = old.count("\n", 0, first)
    if max(len(old), len(new)) - first - last > COMPARED_CHARACTERS:
        return f"--- {name}\n+++ {name}\n[the change begins at line {number + 1:,} and is too long to be shown]"
    before, after = _lines(old[first : len(old) - last]), _lines(new[first : len(new) - last])
    blocks = list(changed_blocks(before, after))
    lines = [f"--- {name}", f"+++ {name}"]
    for hunk in _hunks(blocks):
        lines.extend(_hunk(before, after, hunk, number))
        if len(lines) > SHOWN_LINES:
            break
    removed = sum(block[1] - block[0] for block in blocks)
    added = sum(block[3] - block[2] for block in blocks)
    if len(lines) > SHOWN_LINES:
        lines[SHOWN_LINES:] = [f"[the diff is cut here; in all {removed:,} lines removed, {added:,} added]"]
    return "\n".join(line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]}…" for line in lines)


def _common_ends(old: str, new: str) -> tuple[int, int]:
    """Return how long the same beginning and the same end are, up to the lines that are shown around a change."""
    first = old.rfind("\n", 0, _same_start(old, new)) + 1
    for _ in range(CONTEXT_LINES):
        first = old.rfind("\n", 0, max(0, first - 1)) + 1
    same = min(_same_start(old[::-1], new[::-1]), min(len(old), len(new)) - first)
    end = len(old) - same
    for _ in range(CONTEXT_LINES + 1):
        end = old.find("\n", end) + 1 or len(old)
    return first, len(old) - end


def _same_start(one: str, other: str) -> int:
    """Return how many characters are the same at the beginning; compares big pieces, for files may be big."""
    at, step = 0, PIECE_CHARACTERS
    while one[at : at + step] == other[at : at + step] and at < min(len(one), len(other)):
        at += step
    while step > 1:
        step //= 2
        if one[at : at + step] == other[at : at + step]:
            at += step
    return min(at, len(one), len(other))


def changed_blocks(before: Sequence[str], after: Sequence[str]) -> Iterator[Block]:
    """Yield what was replaced by what, in order; not always the shortest way, but always soon."""
    start = 0
    shorter = min(len(before), len(after))
    while start < shorter and before[start] == after[start]:
        start += 1
    end = 0
    while end < shorter - start and before[-1 - end] == after[-1 - end]:
        end += 1
    whole = (start, len(before) - end, start, len(after) - end)
    old_at, new_at = whole[0], whole[2]
    for old_anchor, new_anchor in [*_anchors(before, after, whole), (whole[1], whole[3])]:
        yield from _between(before, after, (old_at, old_anchor, new_at, new_anchor))
        old_at, new_at = old_anchor + 1, new_anchor + 1


def _anchors(before: Sequence[str], after: Sequence[str], whole: Block) -> list[tuple[int, int]]:
    """Return lines that are once in both, in the same order: the longest such row."""
    first_old, last_old, first_new, last_new = whole
    if (last_old - first_old) * (last_new - first_new) <= COMPARED:
        return []
    in_old, in_new = Counter(before[first_old:last_old]), Counter(after[first_new:last_new])
    place = {line: at for at, line in enumerate(after[first_new:last_new], first_new) if in_new[line] == 1}
    pairs = [
        (at, place[line])
        for at, line in enumerate(before[first_old:last_old], first_old)
        if in_old[line] == 1 and line in place
    ]
    return _longest_rising(pairs)


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    tails: list[int] = []
    at_tail: list[int] = []
    before: list[int] = []
    for number, (_, new) in enumerate(pairs):
        slot = bisect_left(tails, new)
        tails[slot : slot + 1] = [new]
        at_tail[slot : slot + 1] = [number]
        before.append(at_tail[slot - 1] if slot else -1)
    row: list[tuple[int, int]] = []
    number = at_tail[-1] if at_tail else -1
    while number >= 0:
        row.append(pairs[number])
        number = before[number]
    return row[::-1]


def _between(before: Sequence[str], after: Sequence[str], block: Block) -> Iterator[Block]:
    first_old, last_old, first_new, last_new = block
    if first_old == last_old and first_new == last_new:
        return
    if (last_old - first_old) * (last_new - first_new) > COMPARED:
        yield block
        return
    matcher = SequenceMatcher(None, before[first_old:last_old], after[first_new:last_new], autojunk=False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind != "equal":
            yield first_old + i1, first_old + i2, first_new + j1, first_new + j2


def _hunks(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    hunk = [blocks[0]]
    for block in blocks[1:]:
        if block[0] - hunk[-1][1] > 2 * CONTEXT_LINES:
            yield hunk
            hunk = []
        hunk.append(block)
    yield hunk


def _hunk(before: Sequence[str], after: Sequence[str], blocks: Sequence[Block], lines_before: int) -> Iterator[str]:
    first = max(0, blocks[0][0] - CONTEXT_LINES)
    last = min(len(before), blocks[-1][1] + CONTEXT_LINES)
    new_first = blocks[0][2] - (blocks[0][0] - first)
    new_last = blocks[-1][3] + (last - blocks[-1][1])
    old_range = _range(lines_before + first, lines_before + last)
    yield f"@@ -{old_range} +{_range(lines_before + new_first, lines_before + new_last)} @@"
    at = first
    for old_from, old_to, new_from, new_to in blocks:
        yield from (f" {line}" for line in before[at:old_from])
        yield from (f"-{line}" for line in before[old_from:old_to])
        yield from (f"+{line}" for line in after[new_from:new_to])
        at = old_to
    yield from (f" {line}" for line in before[at:last])


def _range(first: int, last: int) -> str:
    return f"{first + 1 if last > first else first},{last - first}"


def _lines(text: str) -> list[str]:
    """Return its lines; a line end that is not plain is part of the line, so that a change of it is seen."""
    lines = [line.replace("\r", "␍") for line in text.split("\n")]
    if lines[-1] == "":
        return lines[:-1]
    lines[-1] += "\n\\ No newline at end of file"
    return lines
