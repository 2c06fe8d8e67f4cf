"""Path patterns as git reads them, such as `src/**/*.py`, translated to regular expressions."""

import re
from collections.abc import Iterator

_TOKEN = re.compile(r"\*+|\\.|.", re.DOTALL)
_WILDCARD = re.compile(r"[*?\[\\]")
_MEMBER = re.compile(r"\[:(?P<name>[^\]]*):\]|(?P<low>\\.|[^\\])(?:-(?P<high>\\.|[^\]\\]))?", re.DOTALL)
_CLASSES = {
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
_NOTHING = "(?!)"
_STAR = "*"
_STARS = "**"  # any number of folders


def translate(pattern: str, *, is_lenient: bool = False) -> str:
    """Return a regular expression for whole relative paths. `*` stays within a name, `**` crosses folders.

    Matching takes time in proportion to the path, because patterns may come from strangers: the text between two
    wildcards is matched where it first fits, and never again.

    A set without its end matches nothing, as in git. With `is_lenient` its bracket is a plain character.
    """
    first, *rest = _split(_tokens(pattern, is_lenient), _STARS)
    if not rest:
        return _names(first)
    *middle, last = rest
    start = _names(first)
    if first and first[-1] != "/":  # `a**`: the rest of that name counts as well
        start += "(?:[^/]*/)?" if middle or last else ".*"
    through = "".join(f"(?>(?:[^/]+/)*?{_names(part)})" for part in middle if part)
    return start + through + (f"(?:[^/]+/)*{_names(last)}" if last else "" if start.endswith(".*") else "[^/].*")


def _tokens(pattern: str, is_lenient: bool) -> Iterator[str]:
    """Yield the stars, and an expression for every other character; the slash after `**` belongs to it."""
    wildcard = _WILDCARD.search(pattern)
    # git compares the text before the first wildcard by itself: behind it, `**` is at the start of a name.
    starts = {0} if is_lenient or "/" not in pattern or wildcard is None else {0, wildcard.start()}
    at = len(pattern) - len(pattern.removeprefix("/"))
    starts.add(at)
    while token := _TOKEN.match(pattern, at):
        at = token.end()
        text = token[0]
        if text[0] == "*":
            is_name = token.start() in starts or pattern[token.start() - 1] == "/"
            if len(text) > 1 and is_name and pattern[at : at + 1] in ("", "/"):
                yield _STARS
                at += 1
                if at == len(pattern) and not is_lenient:  # a slash at the end: no path has one
                    yield _NOTHING
            else:
                yield _STAR
        elif text == "[":
            found, at = _set(pattern, at)
            yield found or (r"\[" if is_lenient else _NOTHING)
        elif text == "\\":
            yield r"\\" if is_lenient else _NOTHING
        else:
            yield "[^/]" if text == "?" else re.escape(text[-1])


def _set(pattern: str, at: int) -> tuple[str, int]:
    """Return the expression of the set that starts before `at`, and where it ends; "" if it has no end."""
    start = at
    is_negated = pattern[start : start + 1] in ("!", "^")
    start += is_negated
    end, members = start, ""
    while end == start or pattern[end : end + 1] != "]":
        member = _MEMBER.match(pattern, end)
        if member is None or (member["name"] is not None and member["name"] not in _CLASSES):
            return "", at
        end = member.end()
        if member["name"] is not None:
            members += _CLASSES[member["name"]]
            continue
        low, high = member["low"][-1], (member["high"] or "")[-1:]
        members += re.escape(low) + (f"{re.escape(low)}-{re.escape(high)}" if low <= high else "")
    return f"(?!/)[{'^' if is_negated else ''}{members}]", end + 1


def _names(tokens: list[str]) -> str:
    return "/".join(_name(name) for name in _split(tokens, "/"))


def _name(tokens: list[str]) -> str:
    first, *rest = ("".join(part) for part in _split(tokens, _STAR))
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>[^/]*?{part})" for part in middle) + f"[^/]*{last}"


def _split(tokens: Iterator[str] | list[str], separator: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token == separator:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts
