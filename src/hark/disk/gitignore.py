"""The rules of .gitignore files, as git reads them."""

import os
import re
from functools import lru_cache
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from hark.disk.regular_files import read_start
from hark.disk.wildcards import translate

GIT = b".git"
FILE_NAME = b".gitignore"
LARGEST_BYTES = 256 * 1024
MOST_WILDCARDS = 2_000  # in one file: each takes time to compile
_BOM = b"\xef\xbb\xbf"
_SPECIAL = re.compile(r"[*?\[\\]")


class IgnoreRules(Struct, frozen=True):
    """Rules of one file that have the same result, with no other between them: most are plain names or paths.

    A folder is matched with two slashes behind it, which no wildcard can match.
    """

    is_ignored: bool
    names: frozenset[bytes]
    paths: frozenset[bytes]
    wildcards: re.Pattern[bytes] | None

    def match(self, path: bytes, *, is_folder: bool) -> bool:
        """Return whether a rule matches a path relative to the rules' folder."""
        name = path.rpartition(b"/")[2]
        if name in self.names or path in self.paths:
            return True
        if is_folder:
            path += b"//"
            if name + b"//" in self.names or path in self.paths:
                return True
        return self.wildcards is not None and self.wildcards.fullmatch(path) is not None


class Ignores(Struct, frozen=True):
    """The rules that apply in a folder: those of the nearest file, then those of the folders above it."""

    folder: bytes = b""  # ends with a slash
    rules: tuple[IgnoreRules, ...] = ()  # the last of the file first
    above: "Ignores | None" = None

    def is_ignored(self, path: str | bytes, *, is_folder: bool) -> bool:
        """Return whether git ignores a path in this folder. The caller has checked the folders above the path."""
        path = os.fsencode(path)
        scope: Ignores | None = self
        while scope is not None:
            for rules in scope.rules:
                if rules.match(path[len(scope.folder) :], is_folder=is_folder):
                    return rules.is_ignored
            scope = scope.above
        return False

    def below(self, folder: str | bytes, *, is_repository: bool) -> "Ignores":
        """Return the rules that apply in a subfolder. The rules above end at the root of a repository."""
        folder = os.fsencode(folder).rstrip(b"/") + b"/"
        above = self
        if is_repository:
            above = Ignores(folder, _read(folder + GIT + b"/info/exclude", follows_link=True))
        rules = _read(folder + FILE_NAME)  # git follows no link to it, either
        return Ignores(folder, rules, above) if rules else above


def ignores_of(folder: Path) -> Ignores:
    """Return the rules that apply in a folder, with those of the folders above it up to its repository."""
    chain = [folder, *folder.parents]
    repository = next((one for one in chain if (one / ".git").exists()), chain[-1])
    ignores = Ignores()
    for one in reversed(chain[: chain.index(repository) + 1]):
        ignores = ignores.below(os.fsencode(one), is_repository=(one / ".git").exists())
    return ignores


@lru_cache(maxsize=64)
def parse_rules(content: bytes) -> tuple[IgnoreRules, ...]:
    """Return the rules in a .gitignore file. Of too many with wildcards the first are left out."""
    lines = content.removeprefix(_BOM).decode("latin-1").split("\n")  # bytes as characters: git compares bytes
    rules = (rule for line in reversed(lines) if (rule := _rule(line)) is not None)
    budget = MOST_WILDCARDS
    found: list[IgnoreRules] = []
    for is_negated, group in groupby(rules, key=lambda rule: rule.is_negated):
        run = dict.fromkeys(group)  # a rule that is repeated is compiled once
        plain = [rule for rule in run if not rule.has_wildcards]
        wild = [rule.expression for rule in islice((rule for rule in run if rule.has_wildcards), budget)]
        budget -= len(wild)
        names = frozenset(_plain(rule.body, rule) for rule in plain if "/" not in rule.body)
        paths = frozenset(_plain(rule.body.removeprefix("/"), rule) for rule in plain if "/" in rule.body)
        wildcards = re.compile("|".join(wild).encode("latin-1"), re.DOTALL) if wild else None
        if names or paths or wildcards:
            found.append(IgnoreRules(not is_negated, names, paths, wildcards))
    return tuple(found)


class _Rule(NamedTuple):
    body: str
    is_negated: bool
    is_for_folders: bool

    @property
    def has_wildcards(self) -> bool:
        return _SPECIAL.search(self.body) is not None

    @property
    def expression(self) -> str:
        # A slash anywhere but at the end ties a pattern to its own folder.
        prefix = "" if "/" in self.body else "(?:[^/]+/)*"
        return f"{prefix}{translate(self.body)}{'//' if self.is_for_folders else '(?://)?'}"


def _plain(text: str, rule: _Rule) -> bytes:
    return text.encode("latin-1") + (b"//" if rule.is_for_folders else b"")


def _rule(line: str) -> _Rule | None:
    line = _without_trailing_blanks(line.removesuffix("\r").partition("\0")[0])
    if line.startswith("#"):
        return None
    body = line.removeprefix("!")
    name = body.removesuffix("/")
    return _Rule(name, line != body, name != body) if name else None


def _without_trailing_blanks(line: str) -> str:
    kept = line.rstrip(" ")
    is_escaped = kept != line and (len(kept) - len(kept.rstrip("\\"))) % 2 == 1
    return kept + " " if is_escaped else kept


def _read(path: bytes, *, follows_link: bool = False) -> tuple[IgnoreRules, ...]:
    """Return a file's rules; none if it is missing or can't be read."""
    try:
        return parse_rules(read_start(path, LARGEST_BYTES, follows_link=follows_link))
    except OSError:
        return ()
