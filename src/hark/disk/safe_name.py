"""File names from outside, made harmless."""

import unicodedata

LONGEST_NAME = 100
_LONGEST_ENDING = 10


def safe_name(name: str | None, otherwise: str = "file") -> str:
    """Return a file name without folders, invisible characters, or leading and trailing dots.

    A name that is too long is shortened before its ending. `otherwise` is returned if nothing is left.
    """
    last = (name or "").replace("\\", "/").rpartition("/")[2]
    visible = "".join(letter for letter in last if unicodedata.category(letter)[0] not in "CZ" or letter == " ")
    clean = visible.strip(" .")
    if len(clean) > LONGEST_NAME:
        stem, dot, ending = clean.rpartition(".")
        tail = dot + ending if 0 < len(ending) <= _LONGEST_ENDING and stem else ""
        clean = clean[: LONGEST_NAME - len(tail)].rstrip(" .") + tail
    return clean or otherwise
