"""Brace expansion: `{a,b}` and `{1..3}` make several words of one."""

import re

from hark.command_safety.following.unknown_marks import UNKNOWN
from hark.command_safety.parsing.words import LiteralText, Part, Word

WORDS_MAX = 256
DEPTH_MAX = 12
PARTS_MAX = 1000
_RANGE = re.compile(r"\{(-?\d{1,9}|[A-Za-z])\.\.(-?\d{1,9}|[A-Za-z])(?:\.\.-?\d{1,9})?\}")
_PIECES = re.compile(r"\{(?:-?\d{1,9}|[A-Za-z])\.\.(?:-?\d{1,9}|[A-Za-z])(?:\.\.-?\d{1,9})?\}|[{},]|[^{},]+")

# A brace or a comma stands alone as an unquoted text; everything else is opaque.
_OPEN, _CLOSE, _COMMA = LiteralText("{"), LiteralText("}"), LiteralText(",")


def expand_braces(word: Word) -> list[Word]:
    """Return the words that a word becomes, itself alone when it has no braces. Too many become an unknown one."""
    if not any(isinstance(part, LiteralText) and not part.is_quoted and "{" in part.text for part in word):
        return [word]
    parts = _split(word)
    if len(parts) > PARTS_MAX:
        return [word, (LiteralText(UNKNOWN),)]
    words = _expand(parts, 0)
    return words if len(words) <= WORDS_MAX else [*words[:WORDS_MAX], (LiteralText(UNKNOWN),)]


def _split(word: Word) -> list[Part]:
    parts: list[Part] = []
    for part in word:
        if isinstance(part, LiteralText) and not part.is_quoted:
            parts.extend(LiteralText(piece) for piece in _PIECES.findall(part.text))
        else:
            parts.append(part)
    return parts


def _expand(parts: list[Part], depth: int) -> list[Word]:
    words: list[Word] = [()]
    at = 0
    while at < len(parts):
        part = parts[at]
        choices: list[Word] = [(part,)]
        if part == _OPEN and (found := _alternatives(parts, at)) and depth < DEPTH_MAX:
            alternatives, at = found
            choices = [word for alternative in alternatives for word in _expand(alternative, depth + 1)]
        elif isinstance(part, LiteralText) and not part.is_quoted and (match := _RANGE.fullmatch(part.text)):
            choices = [(LiteralText(value),) for value in _range(match[1], match[2])]
        if len(words) * len(choices) > WORDS_MAX:
            return [(LiteralText(UNKNOWN),), *words, *choices][: WORDS_MAX + 1]
        words = (
            [(*word, *choice) for word in words for choice in choices]
            if len(choices) > 1 or len(words) > 1
            else [(*words[0], *choices[0])]
        )
        at += 1
    return words


def _alternatives(parts: list[Part], start: int) -> tuple[list[list[Part]], int] | None:
    """Return what stands between the commas of the brace at `start`, and where it closes. None: it is plain text."""
    alternatives: list[list[Part]] = [[]]
    depth = 0
    for at in range(start + 1, len(parts)):
        part = parts[at]
        if part == _CLOSE and depth == 0:
            return (alternatives, at) if len(alternatives) > 1 else None
        depth += 1 if part == _OPEN else -1 if part == _CLOSE else 0
        if part == _COMMA and depth == 0:
            alternatives.append([])
        else:
            alternatives[-1].append(part)
    return None


def _range(first: str, last: str) -> list[str]:
    """Return the values of a range. Of numbers the ends alone: a number does no harm."""
    if first.isalpha() and last.isalpha():
        low, high = sorted((ord(first), ord(last)))
        return [chr(code) for code in range(low, high + 1)]
    return [first, last]
