"""The names under which models see the servers' tools: valid for every API, each of them once."""

import hashlib
import re

SEPARATOR = "__"
NAME_CHARACTERS = 64
_HASH_CHARACTERS = 8
_OTHER_SIGNS = re.compile(r"[^a-zA-Z0-9_-]")


class Names:
    """Names that were given out. The same tools in the same order always get the same names."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def give(self, server: str, tool: str) -> str:
        """Return SERVER__TOOL, changed where it must be."""
        plain = plain_name(server, tool)
        name = plain if plain not in self._taken else _hashed(plain, server, tool)
        self._taken.add(name)
        return name


def plain_name(server: str, tool: str) -> str:
    """Return the name of a tool that clashes with no other."""
    whole = f"{server}{SEPARATOR}{tool}"
    name = _OTHER_SIGNS.sub("_", whole)
    return name if len(name) <= NAME_CHARACTERS else _hashed(name, server, tool)


def _hashed(name: str, server: str, tool: str) -> str:
    digest = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:_HASH_CHARACTERS]
    return f"{name[: NAME_CHARACTERS - _HASH_CHARACTERS - 1]}_{digest}"
