"""The width of a character in a terminal."""

import unicodedata


def character_width(character: str) -> int:
    """Return how many terminal columns the character occupies: 0, 1 or 2."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
