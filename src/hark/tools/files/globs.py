"""Patterns for paths, such as `src/**/*.py`, as regular expressions."""

import re

BRACES = 200


def translate(pattern: str) -> str:
    """Return a regular expression for whole relative paths: `*` stays within a name, `**` goes through folders.

    Matching takes no longer than the path is long, more or less: patterns may come from strangers.
    """
    runs: list[list[str]] = [[]]
    for name in pattern.split("/"):
        if name == "**":
            runs.append([])
        else:
            runs[-1].append(_name(name))
    first, *rest = ["/".join(run) for run in runs]
    if not rest:
        return first
    *middle, last = rest
    # What stands between two `**` may be taken where it first comes: what is behind fits as well there as later.
    through = "".join(f"(?>(?:[^/]+/)*?{run}/)" for run in middle if run)
    return (f"{first}/" if first else "") + through + (f"(?:[^/]+/)*{last}" if last else ".+")


def compile_glob(pattern: str) -> re.Pattern[str]:
    """Return what a file's path relative to the search is matched with; without a slash, its name alone counts.

    Braces hold alternatives: `*.{ts,tsx}`.

    Raises:
        ValueError: The pattern has too many alternatives.
    """
    anchored = pattern.removeprefix("./").removeprefix("/")
    prefix = "" if "/" in pattern else "(?:.*/)?"
    return re.compile(prefix + "(?:" + "|".join(translate(one) for one in alternatives(anchored)) + ")", re.DOTALL)


def alternatives(pattern: str) -> list[str]:
    """Return the patterns that one with braces stands for.

    Raises:
        ValueError: There are too many.
    """
    found = re.search(r"\{([^{}]*,[^{}]*)\}", pattern)
    if found is None:
        return [pattern]
    parts = [pattern[: found.start()] + part + pattern[found.end() :] for part in found[1].split(",")]
    patterns = [one for part in parts for one in alternatives(part)]
    if len(patterns) > BRACES:
        raise ValueError(f"The pattern {pattern} stands for more than {BRACES} others.")
    return patterns


def _name(pattern: str) -> str:
    """Return the expression of a pattern for one name."""
    parts = [""]
    at = 0
    while at < len(pattern):
        if pattern[at] == "*":
            parts.append("")
            at += len(pattern[at:]) - len(pattern[at:].lstrip("*"))
        else:
            piece, at = _letter(pattern, at)
            parts[-1] += piece
    first, *rest = parts
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>[^/]*?{part})" for part in middle) + f"[^/]*{last}"


def _letter(pattern: str, at: int) -> tuple[str, int]:
    """Return the expression of what stands at `at`, and where the next begins."""
    match pattern[at]:
        case "?":
            return "[^/]", at + 1
        case "[":
            return _set(pattern, at)
        case "\\" if at + 1 < len(pattern):
            return re.escape(pattern[at + 1]), at + 2
        case letter:
            return re.escape(letter), at + 1


def _set(pattern: str, at: int) -> tuple[str, int]:
    start = at + 1
    is_negated = pattern[start : start + 1] in ("!", "^")
    start += is_negated
    end = pattern.find("]", start + 1)
    if end < 0:
        return re.escape("["), at + 1
    inside = re.sub(r"([\\\[&~|^])", r"\\\1", pattern[start:end]).replace("]", "\\]")
    try:
        re.compile(f"[{inside}]")
    except re.error:  # such as a range the wrong way round: it matches nothing
        return "(?!)", end + 1
    return f"(?!/)[{'^' if is_negated else ''}{inside}]", end + 1
