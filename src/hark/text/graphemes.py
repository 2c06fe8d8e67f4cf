"""Cuts text between characters as a reader sees them: an emoji sequence or a letter with its accents is never split."""

import unicodedata

_JOINER = "\u200d"
# Longer sequences are not characters of a language but an attack, and are split.
MAX_CLUSTER_CHARACTERS = 64


def safe_cut(text: str, limit: int) -> int:
    """Return the last position up to `limit` that does not split a grapheme cluster.

    Returns `limit` itself if the text before it is one unfinished cluster, so that a caller that cuts off piece after
    piece always makes progress.
    """
    if limit >= len(text):
        return len(text)
    limit = max(limit, 0)
    for position in range(limit, max(limit - MAX_CLUSTER_CHARACTERS, 0), -1):
        if _is_boundary(text, position):
            return position
    return limit


def shorten(text: str, max_characters: int) -> str:
    """Return the text with an ellipsis, in at most `max_characters` characters, or unchanged if it is short enough."""
    return text if len(text) <= max_characters else f"{text[: safe_cut(text, max_characters - 1)]}…"


def _is_boundary(text: str, position: int) -> bool:
    """Return whether text may be cut before `position`: the rules of Unicode's UAX 29, simplified to split less."""
    before, after = text[position - 1], text[position]
    if before.isascii() and after.isascii():
        return (before, after) != ("\r", "\n")
    if before == _JOINER:
        return after.isspace()
    if _is_regional(before) and _is_regional(after):
        first = position
        while first > max(position - MAX_CLUSTER_CHARACTERS, 0) and _is_regional(text[first - 1]):
            first -= 1
        return (position - first) % 2 == 0
    return not _extends(after) or before in "\r\n"


def _is_regional(character: str) -> bool:
    """Return whether a character is half of a flag."""
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _extends(character: str) -> bool:
    """Return whether a character belongs to the one before it."""
    return (
        unicodedata.category(character) in ("Mn", "Mc", "Me")  # accents, vowel signs, variation selectors
        or character in "\u200c\u200d\u0e33\u0eb3\uff9e\uff9f"
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= character <= "\U000e007f"  # the tags of a regional flag
        or "\u1160" <= character <= "\u11ff"  # vowels and finals of a Korean syllable in parts
    )
