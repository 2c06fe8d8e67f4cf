"""Translates a regular expression of ripgrep to one of Python with the same meaning."""

import re

from hark.disk.wildcards import POSIX_CLASSES

_TOKEN = re.compile(
    r"\[(?P<negation>\^?)(?P<bracket>\]?)(?P<members>(?:\[:\^?\w+:\]|\\.|[^\]\\])*+)(?P<set>\]|\Z)"
    r"|\\b\{(?P<edge>(?:start|end)(?:-half)?)\}|(?P<escape>\\.)|(?P<name>\(\?<(?=\w))"
    r"|(?P<repeated>(?:[*+?]|\{\d+,?\d*\})\+)|.",
    re.DOTALL,
)
_MEMBER = re.compile(r"\[:(?P<class>\w+):\]|(?P<escape>\\.)|(?P<operator>\[|&&|--|~~)|.", re.DOTALL)
_EDGES = {"start": r"\b(?=\w)", "end": r"\b(?<=\w)", "start-half": r"(?<!\w)", "end-half": r"(?!\w)"}
# Python's \B doesn't match an empty line.
_ESCAPES = {r"\<": _EDGES["start"], r"\>": _EDGES["end"], r"\B": r"(?!\b)"}
_CLASSES = {**POSIX_CLASSES, "word": "0-9A-Za-z_", "ascii": r"\x00-\x7f"}


def translate_pattern(pattern: str) -> str:
    """Return an expression for Python's `re` module.

    Raises:
        ValueError: Python has no such expression, or the pattern contains a line break.
    """
    return _TOKEN.sub(_translate_token, pattern)


def _translate_token(token: re.Match[str]) -> str:
    match token.lastgroup:
        case "set":
            if not token["set"]:
                raise ValueError("a set that starts with [ has no end; write a plain [ with a backslash")
            return f"[{token['negation']}{token['bracket']}{_MEMBER.sub(_translate_member, token['members'])}]"
        case "edge":
            return _EDGES[token["edge"]]
        case "escape":
            if token[0] == r"\n":
                raise ValueError(r"\n is not allowed, because the search works line by line")
            return _ESCAPES.get(token[0]) or _check_escape(token[0])
        case "name":
            return "(?P<"
        case "repeated":
            raise ValueError(f"{token[0]} has two repetition operators; use one of them")
        case _:
            return token[0]


def _translate_member(member: re.Match[str]) -> str:
    if member["operator"]:
        raise ValueError(f"sets inside sets are not supported; write a plain {member[0]} with backslashes")
    if name := member["class"]:
        if name not in _CLASSES:
            raise ValueError(f"[:{name}:] is not a character class")
        return _CLASSES[name]
    return _check_escape(member[0])


def _check_escape(text: str) -> str:
    if text in (r"\p", r"\P"):
        raise ValueError(f"{text} needs ripgrep and no look-around; use a set such as [A-Za-z], or \\w")
    return text
