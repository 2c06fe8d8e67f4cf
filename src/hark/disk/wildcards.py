"""Translates git path patterns, such as `src/**/*.py`, to regular expressions."""

import re
from collections.abc import Iterator

_TOKEN = re.compile(r"\*+|\\.|.", re.DOTALL)
_WILDCARD = re.compile(r"[*?\[\\]")
_MEMBER = re.compile(r"\[:(?P<name>[^\]]*):\]|(?P<low>\\.|[^\\])(?:-(?P<high>\\.|[^\]\\]))?", re.DOTALL)
POSIX_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_NEVER_MATCHES = "(?!)"
_SINGLE_STAR = "*"
_DOUBLE_STAR = "**"  # any number of folders


def wildcard_to_regex(pattern: str, *, is_lenient: bool = False) -> str:
    """Return a regular expression for whole relative paths. `*` stays within a name, `**` crosses folders.

    Patterns may come from untrusted sources, so matching time is proportional to the path: the text between two
    wildcards is matched at its first occurrence, without backtracking.

    An unterminated set matches nothing, as in git. With `is_lenient`, its bracket is a plain character.
    """
    first, *rest = _split_tokens(_tokenize(pattern, is_lenient), _DOUBLE_STAR)
    if not rest:
        return _translate_path(first)
    *middle, last = rest
    start = _translate_path(first)
    if first and first[-1] != "/":  # `a**` also matches the rest of that name
        start += "(?:[^/]*/)?" if any(middle) or last else ".*"
    through = "".join(f"(?>(?:[^/]+/)*?{_translate_path(part)})" for part in middle if part)
    return (
        start + through + (f"(?:[^/]+/)*{_translate_path(last)}" if last else "" if start.endswith(".*") else "[^/].*")
    )


def _tokenize(pattern: str, is_lenient: bool) -> Iterator[str]:
    """Yield each star token, and a regular expression for every other character. `**` includes the slash after it."""
    wildcard = _WILDCARD.search(pattern)
    # git compares the text before the first wildcard separately, so a `**` after it counts as the start of a name.
    starts = {0} if is_lenient or "/" not in pattern or wildcard is None else {0, wildcard.start()}
    at = len(pattern) - len(pattern.removeprefix("/"))
    starts.add(at)
    while token := _TOKEN.match(pattern, at):
        at = token.end()
        text = token[0]
        if text[0] == "*":
            is_name = token.start() in starts or pattern[token.start() - 1] == "/"
            if len(text) > 1 and is_name and pattern[at : at + 1] in ("", "/"):
                yield _DOUBLE_STAR
                at += 1
                if at == len(pattern) and not is_lenient:  # no path ends with a slash
                    yield _NEVER_MATCHES
            else:
                yield _SINGLE_STAR
        elif text == "[":
            found, at = _translate_set(pattern, at)
            yield found or (r"\[" if is_lenient else _NEVER_MATCHES)
            if not found and not is_lenient:
                return
        elif text == "\\":
            yield r"\\" if is_lenient else _NEVER_MATCHES
        else:
            yield "[^/]" if text == "?" else re.escape(text[-1])


def _translate_set(pattern: str, at: int) -> tuple[str, int]:
    """Return a regular expression for the `[...]` set whose content starts at `at` ("" if unclosed), and its end."""
    start = at
    is_negated = pattern[start : start + 1] in ("!", "^")
    start += is_negated
    end, members = start, ""
    while end == start or pattern[end : end + 1] != "]":
        member = _MEMBER.match(pattern, end)
        if member is None or (member["name"] is not None and member["name"] not in POSIX_CLASSES):
            return "", at
        end = member.end()
        if member["name"] is not None:
            members += POSIX_CLASSES[member["name"]]
            continue
        low, high = member["low"][-1], (member["high"] or "")[-1:]
        members += re.escape(low) + (f"{re.escape(low)}-{re.escape(high)}" if low <= high else "")
    return f"(?!/)[{'^' if is_negated else ''}{members}]", end + 1


def _translate_path(tokens: list[str]) -> str:
    return "/".join(_translate_name(name) for name in _split_tokens(tokens, "/"))


def _translate_name(tokens: list[str]) -> str:
    first, *rest = ("".join(part) for part in _split_tokens(tokens, _SINGLE_STAR))
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>[^/]*?{part})" for part in middle) + f"[^/]*{last}"


def _split_tokens(tokens: Iterator[str] | list[str], separator: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token == separator:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts
