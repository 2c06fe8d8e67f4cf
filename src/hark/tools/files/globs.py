"""The glob patterns of the file tools: git's patterns, with alternatives in braces or separated by commas."""

import re

from msgspec import Struct

from hark.disk.wildcards import wildcard_to_regex

MAX_ALTERNATIVES = 200
MAX_CHARACTERS = 1_000
_BRACES = re.compile(r"\{([^{},]*,[^{}]*)\}")


class Glob(Struct, frozen=True):
    """A glob for paths relative to the searched folder.

    A pattern without a slash is matched against the file name alone. `src/` matches all files in folders named src.
    `*.py,*.js` and `*.{py,js}` have two alternatives. `!*.md` excludes files.
    """

    names: list[str]  # the patterns without those that exclude files
    included: re.Pattern[str]
    excluded: re.Pattern[str]

    def matches(self, *paths: str) -> bool:
        """Return whether the glob matches a file, whose path may be given relative to several folders."""
        return any(map(self.included.fullmatch, paths)) and not any(map(self.excluded.fullmatch, paths))


def parse_glob(text: str) -> Glob:
    """Parse a glob.

    Raises:
        ValueError: The glob is too long or has too many alternatives.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"The glob {text[:60]}… is longer than {MAX_CHARACTERS:,} characters. Use a shorter one.")
    stripped = (part.strip() for pattern in _expand_braces(text) for part in pattern.split(","))
    patterns = dict.fromkeys(filter(None, stripped))
    included = [pattern for pattern in patterns if not pattern.startswith("!")]
    excluded = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    return Glob(included, _compile(included or ["**"]), _compile(excluded))


def _compile(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_translate, patterns)) or "(?!)", re.DOTALL)


def _translate(pattern: str) -> str:
    anchored = pattern.removeprefix("./").removeprefix("/")
    prefix = "" if "/" in pattern.removesuffix("/") else "(?:.*/)?"
    return f"{prefix}(?:{wildcard_to_regex(anchored, is_lenient=True)}{'.*' if anchored.endswith('/') else ''})"


def _expand_braces(pattern: str) -> list[str]:
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
