"""Computes a short unified diff of two texts in bounded time."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from hark.text.graphemes import shorten
from hark.tools.files.file_text import displayable

CONTEXT_LINES = 3
MAX_SHOWN_LINES = 120
MAX_LINE_CHARACTERS = 400
MAX_LINE_COMPARISONS = 40_000
MAX_COMPARED_CHARACTERS = 1_000_000

Block = tuple[int, int, int, int]
"""A replaced range: the first and end line in the old text, then the first and end line in the new text."""
_Sequence = tuple[int, int, "_Sequence | None"]
"""A linked list of index pairs."""


def unified_diff(old: str, new: str, name: str) -> str:
    """Return a unified diff with a heading, truncated if it is long. Return "" if the texts are equal."""
    if old == new:
        return ""
    first, last = _common_start_and_end(old, new)
    number = old.count("\n", 0, first)
    if max(len(old), len(new)) - first - last > MAX_COMPARED_CHARACTERS:
        return f"--- {name}\n+++ {name}\n[the change begins at line {number + 1:,} and is too long to show]"
    before, after = _split_lines(old[first : len(old) - last]), _split_lines(new[first : len(new) - last])
    blocks = list(changed_blocks(before, after))
    lines = [f"--- {name}", f"+++ {name}"]
    for hunk in _group_into_hunks(blocks):
        lines.extend(_format_hunk(before, after, hunk, number))
        if len(lines) > MAX_SHOWN_LINES:
            break
    removed = sum(block[1] - block[0] for block in blocks)
    added = sum(block[3] - block[2] for block in blocks)
    if len(lines) > MAX_SHOWN_LINES:
        lines[MAX_SHOWN_LINES:] = [f"[diff truncated; in total {removed:,} lines removed, {added:,} added]"]
    return "\n".join(shorten(line, MAX_LINE_CHARACTERS + 1) for line in lines)


def _common_start_and_end(old: str, new: str) -> tuple[int, int]:
    """Return the lengths of the common start and end, without the context lines shown around a change."""
    first = old.rfind("\n", 0, common_prefix_length(old, new)) + 1
    for _ in range(CONTEXT_LINES):
        first = old.rfind("\n", 0, max(0, first - 1)) + 1
    same = min(common_prefix_length(old[::-1], new[::-1]), min(len(old), len(new)) - first)
    end = len(old) - same
    for _ in range(CONTEXT_LINES + 1):
        end = old.find("\n", end) + 1 or len(old)
    return first, len(old) - end


def common_prefix_length(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the common prefix. A binary search with few comparisons, because files may be large."""
    lengths = range(1, min(len(left), len(right)) + 1)
    return bisect_left(lengths, True, key=lambda length: left[:length] != right[:length])


def changed_blocks(before: Sequence[str], after: Sequence[str]) -> Iterator[Block]:
    """Yield the changed blocks in order. The search is fast, but does not always find the smallest blocks.

    Long texts are compared between anchors: lines that occur once in both texts, in the same order.
    """
    start = old_at = new_at = common_prefix_length(before, after)
    end = common_prefix_length(before[start:][::-1], after[start:][::-1])
    before, after = before[: len(before) - end], after[: len(after) - end]
    is_long = (len(before) - start) * (len(after) - start) > MAX_LINE_COMPARISONS
    anchors = _find_anchors(before, after, start) if is_long else []
    for old_anchor, new_anchor in [*anchors, (len(before), len(after))]:
        old, new = before[old_at:old_anchor], after[new_at:new_anchor]
        if len(old) * len(new) > MAX_LINE_COMPARISONS:
            yield old_at, old_anchor, new_at, new_anchor
        elif old or new:
            for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
                if kind != "equal":
                    yield old_at + i1, old_at + i2, new_at + j1, new_at + j2
        old_at, new_at = old_anchor + 1, new_anchor + 1


def _find_anchors(before: Sequence[str], after: Sequence[str], start: int) -> list[tuple[int, int]]:
    """Return the longest sequence of lines that occur once in both texts, in the same order, as index pairs."""
    in_old, in_new = Counter(before[start:]), Counter(after[start:])
    new_index = {line: at for at, line in enumerate(after[start:], start) if in_new[line] == 1}
    ends: list[int] = []  # for each length, the smallest index where an increasing sequence of this length ends
    sequences: list[_Sequence] = []
    for at, line in enumerate(before[start:], start):
        if in_old[line] == 1 and line in new_index:
            length = bisect_left(ends, new_index[line])
            ends[length : length + 1] = [new_index[line]]
            sequences[length : length + 1] = [(at, new_index[line], sequences[length - 1] if length else None)]
    anchors: list[tuple[int, int]] = []
    last = sequences[-1] if sequences else None
    while last:
        anchors.append(last[:2])
        last = last[2]
    return anchors[::-1]


def _group_into_hunks(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    hunk = [blocks[0]]
    for block in blocks[1:]:
        if block[0] - hunk[-1][1] > 2 * CONTEXT_LINES:
            yield hunk
            hunk = []
        hunk.append(block)
    yield hunk


def _format_hunk(before: Sequence[str], after: Sequence[str], blocks: Sequence[Block], offset: int) -> Iterator[str]:
    first = max(0, blocks[0][0] - CONTEXT_LINES)
    last = min(len(before), blocks[-1][1] + CONTEXT_LINES)
    new_first = blocks[0][2] - (blocks[0][0] - first)
    new_last = blocks[-1][3] + (last - blocks[-1][1])
    old_range = _format_range(offset + first, offset + last)
    yield f"@@ -{old_range} +{_format_range(offset + new_first, offset + new_last)} @@"
    at = first
    for old_from, old_to, new_from, new_to in blocks:
        yield from (f" {line}" for line in before[at:old_from])
        yield from (f"-{line}" for line in before[old_from:old_to])
        yield from (f"+{line}" for line in after[new_from:new_to])
        at = old_to
    yield from (f" {line}" for line in before[at:last])


def _format_range(first: int, last: int) -> str:
    return f"{first + 1 if last > first else first},{last - first}"


def _split_lines(text: str) -> list[str]:
    """Split a text into lines. Carriage returns and invalid bytes are made visible."""
    lines = [line.replace("\r", "␍") for line in displayable(text).split("\n")]
    if lines[-1] == "":
        return lines[:-1]
    lines[-1] += "\n\\ No newline at end of file"
    return lines
