"""Brace expansion: `{a,b}` and `{1..3}` turn one word into several."""

import re

from hark.command_safety.following.markers import UNKNOWN
from hark.command_safety.parsing.syntax_tree import LiteralText, Word, WordPart

WORDS_MAX = 256
DEPTH_MAX = 12
PARTS_MAX = 1000
_RANGE = re.compile(r"\{(-?\d{1,9}|[A-Za-z])\.\.(-?\d{1,9}|[A-Za-z])(?:\.\.-?\d{1,9})?\}")
_PIECES = re.compile(r"\{(?:-?\d{1,9}|[A-Za-z])\.\.(?:-?\d{1,9}|[A-Za-z])(?:\.\.-?\d{1,9})?\}|[{},]|[^{},]+")

# A single unquoted brace or comma is syntax. All other parts are opaque.
_OPEN, _CLOSE, _COMMA = LiteralText("{"), LiteralText("}"), LiteralText(",")


def expand_braces(word: Word) -> list[Word]:
    """Return the words that a word expands to. Words beyond the limit are replaced by one unknown word."""
    if not any(isinstance(part, LiteralText) and not part.is_quoted and "{" in part.text for part in word):
        return [word]
    parts = _split_at_braces(word)
    if len(parts) > PARTS_MAX:
        return [word, (LiteralText(UNKNOWN),)]
    words = _expand_parts(parts, 0)
    return words if len(words) <= WORDS_MAX else [*words[:WORDS_MAX], (LiteralText(UNKNOWN),)]


def _split_at_braces(word: Word) -> list[WordPart]:
    parts: list[WordPart] = []
    for part in word:
        if isinstance(part, LiteralText) and not part.is_quoted:
            parts.extend(LiteralText(piece) for piece in _PIECES.findall(part.text))
        else:
            parts.append(part)
    return parts


def _expand_parts(parts: list[WordPart], depth: int) -> list[Word]:
    words: list[Word] = [()]
    ends = _find_ends(parts) if depth < DEPTH_MAX else {}
    at = 0
    while at < len(parts):
        part = parts[at]
        choices: list[Word] = [(part,)]
        if at in ends:
            alternatives = _split_alternatives(parts[at + 1 : ends[at]])
            at = ends[at]
            choices = [word for alternative in alternatives for word in _expand_parts(alternative, depth + 1)]
        elif isinstance(part, LiteralText) and not part.is_quoted and (match := _RANGE.fullmatch(part.text)):
            choices = [(LiteralText(value),) for value in _expand_range(match[1], match[2])]
        if len(words) * len(choices) > WORDS_MAX:
            return [(LiteralText(UNKNOWN),), *words, *choices][: WORDS_MAX + 1]
        words = (
            [(*word, *choice) for word in words for choice in choices]
            if len(choices) > 1 or len(words) > 1
            else [(*words[0], *choices[0])]
        )
        at += 1
    return words


def _find_ends(parts: list[WordPart]) -> dict[int, int]:
    """Return the index of the closing brace for each opening brace with alternatives. Other braces are literal."""
    ends: dict[int, int] = {}
    open_braces: list[int] = []
    with_alternatives: set[int] = set()
    for at, part in enumerate(parts):
        if part == _OPEN:
            open_braces.append(at)
        elif part == _COMMA and open_braces:
            with_alternatives.add(open_braces[-1])
        elif part == _CLOSE and open_braces:
            start = open_braces.pop()
            if start in with_alternatives:
                ends[start] = at
    return ends


def _split_alternatives(parts: list[WordPart]) -> list[list[WordPart]]:
    alternatives: list[list[WordPart]] = [[]]
    depth = 0
    for part in parts:
        depth += 1 if part == _OPEN else -1 if part == _CLOSE else 0
        if part == _COMMA and depth == 0:
            alternatives.append([])
        else:
            alternatives[-1].append(part)
    return alternatives


def _expand_range(first: str, last: str) -> list[str]:
    """Return all letters in a range. For numbers, return only the first and last, because numbers are harmless."""
    if first.isalpha() and last.isalpha():
        low, high = sorted((ord(first), ord(last)))
        return [chr(code) for code in range(low, high + 1)]
    return [first, last]
