"""Splits a long text into parts between paragraphs, lines or words. Code fences are closed and reopened."""

import re

_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})(.*)$")


def split_text(text: str, max_characters: int) -> list[str]:
    """Split a text into parts of at most `max_characters`. A fence that is open at a split is closed and reopened.

    Without the added fences, the joined parts equal the text except for whitespace at the splits.
    """
    parts: list[str] = []
    tail = text.strip("\n")
    reopened = ""
    while len(reopened) + len(tail) > max_characters:
        available = max_characters - len(reopened) - 8  # for the fence that may have to be closed
        split_at = _find_split(tail, available)
        part = reopened + tail[:split_at].rstrip()
        tail = tail[split_at:].lstrip("\n") if tail[split_at : split_at + 1] == "\n" else tail[split_at:].lstrip(" ")
        fence = _open_fence(part)
        reopened = ""
        if fence:
            part += f"\n{fence[0]}"
            reopened = f"{fence[0]}{fence[1]}\n"
        parts.append(part)
    if tail or not parts:
        parts.append(reopened + tail)
    return parts


def _find_split(text: str, available: int) -> int:
    """Return where to split, within the second half of `available`: after a paragraph, line, sentence or word."""
    for separator in ("\n\n", "\n", ". ", " "):
        position = text.rfind(separator, available // 2, available)
        if position > 0:
            return position + (1 if separator == ". " else 0)
    return available


def _open_fence(text: str) -> tuple[str, str] | None:
    """Return the fence that is open at the end of a text and its language, or None."""
    fence: tuple[str, str] | None = None
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if match is None:
            continue
        if fence is None:
            fence = match[2], match[3].strip()
        elif match[2].startswith(fence[0]) and not match[3].strip():
            fence = None
    return fence
