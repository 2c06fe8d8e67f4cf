"""The glob patterns of the file tools: git's patterns, with alternatives in braces."""

import re

from hark.disk.wildcards import wildcard_to_regex

MAX_ALTERNATIVES = 200
MAX_CHARACTERS = 1_000
_BRACES = re.compile(r"\{([^{},]*,[^{}]*)\}")


def compile_glob(pattern: str) -> re.Pattern[str]:
    """Compile a glob into a regular expression for paths relative to the searched folder.

    A pattern without a slash is matched against the file name alone. Braces contain alternatives, as in `*.{ts,tsx}`.

    Raises:
        ValueError: The pattern is too long or has too many alternatives.
    """
    if len(pattern) > MAX_CHARACTERS:
        raise ValueError(f"The glob {pattern[:60]}… is longer than {MAX_CHARACTERS:,} characters. Use a shorter one.")
    anchored = pattern.removeprefix("./").removeprefix("/")
    prefix = "" if "/" in pattern else "(?:.*/)?"
    expressions = (wildcard_to_regex(one, is_lenient=True) for one in expand_braces(anchored))
    return re.compile(f"{prefix}(?:{'|'.join(expressions)})", re.DOTALL)


def expand_braces(pattern: str) -> list[str]:
    """Return the patterns that a pattern with braces expands to.

    Raises:
        ValueError: The pattern has too many alternatives.
    """
    patterns = [pattern]
    while any(braces := [_BRACES.search(one) for one in patterns]):
        patterns = [
            one[: found.start()] + part + one[found.end() :] if found else one
            for one, found in zip(patterns, braces, strict=True)
            for part in (found[1].split(",") if found else ("",))
        ]
        if len(patterns) > MAX_ALTERNATIVES:
            raise ValueError(f"The braces in {pattern} expand to more than {MAX_ALTERNATIVES} patterns.")
    return patterns
