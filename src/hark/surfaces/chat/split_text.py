"""A long text in pieces that a platform takes: cut between paragraphs, lines or words, code fences kept whole."""

import re

_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})(.*)$")


def pieces(text: str, characters: int) -> list[str]:
    """Return the text in pieces of at most so many characters; a fence that is open at a cut is closed and opened anew.

    Joined and with those fences taken out, the pieces are the text, but for blanks at the cuts.
    """
    found: list[str] = []
    rest = text.strip("\n")
    reopened = ""
    while len(reopened) + len(rest) > characters:
        room = characters - len(reopened) - 8  # for the fence that may have to be closed
        place = _cut(rest, room)
        piece = reopened + rest[:place].rstrip()
        rest = rest[place:].lstrip("\n") if rest[place : place + 1] == "\n" else rest[place:].lstrip(" ")
        fence = _open_fence(piece)
        reopened = ""
        if fence:
            piece += f"\n{fence[0]}"
            reopened = f"{fence[0]}{fence[1]}\n"
        found.append(piece)
    if rest or not found:
        found.append(reopened + rest)
    return found


def _cut(text: str, room: int) -> int:
    """Return where to cut: at the last paragraph's end in the second half, else a line's, else a word's."""
    for separator in ("\n\n", "\n", ". ", " "):
        place = text.rfind(separator, room // 2, room)
        if place > 0:
            return place + (1 if separator == ". " else 0)
    return room


def _open_fence(text: str) -> tuple[str, str] | None:
    """Return the fence that is open at the end of a text, with its language."""
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
