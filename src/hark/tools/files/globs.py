"""The globs of the file tools: git's patterns, and alternatives in braces."""

import re

from hark.disk.wildcards import translate

BRACES = 200


def compile_glob(pattern: str) -> re.Pattern[str]:
    """Return what a file's path relative to the search is matched with; without a slash, its name alone counts.

    Braces hold alternatives: `*.{ts,tsx}`.

    Raises:
        ValueError: The pattern has too many alternatives.
    """
    anchored = pattern.removeprefix("./").removeprefix("/")
    prefix = "" if "/" in pattern else "(?:.*/)?"
    expressions = (translate(one, is_lenient=True) for one in alternatives(anchored))
    return re.compile(f"{prefix}(?:{'|'.join(expressions)})", re.DOTALL)


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
