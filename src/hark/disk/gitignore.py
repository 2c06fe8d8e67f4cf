"""Rules of .gitignore files, interpreted as git does."""

import os
import re
from functools import lru_cache
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from hark.disk.regular_files import read_start
from hark.disk.wildcards import wildcard_to_regex

GIT = b".git"
FILE_NAME = b".gitignore"
MAX_FILE_BYTES = 256 * 1024
MAX_WILDCARDS = 2_000  # per file, because each takes time to compile
EXPRESSION_RULES = 200  # per regular expression, because no other thread runs while one is matched
_BOM = b"\xef\xbb\xbf"
_WILDCARD = re.compile(r"[*?\[\\]")


class IgnoreRuleGroup(Struct, frozen=True):
    """Consecutive rules of one .gitignore file that all ignore, or all include, the paths that they match.

    Most rules are plain names or paths. `//` at the end marks a folder, because no wildcard matches it.
    """

    is_ignored: bool
    names: frozenset[bytes]
    paths: frozenset[bytes]
    wildcards: tuple[re.Pattern[bytes], ...]

    def matches(self, path: bytes, *, is_folder: bool) -> bool:
        """Return whether a rule matches a path relative to the folder that contains the .gitignore file."""
        name = path.rpartition(b"/")[2]
        if name in self.names or path in self.paths:
            return True
        if is_folder:
            path += b"//"
            if name + b"//" in self.names or path in self.paths:
                return True
        return any(wildcard.fullmatch(path) for wildcard in self.wildcards)


class IgnoreScope(Struct, frozen=True):
    """The ignore rules for a folder: those in the nearest .gitignore file, then those from its parent folders."""

    folder: bytes = b""  # ends with a slash
    rules: tuple[IgnoreRuleGroup, ...] = ()  # the last rule of the file first
    parent: "IgnoreScope | None" = None

    def is_ignored(self, path: str | bytes, *, is_folder: bool) -> bool:
        """Return whether git ignores a path in this folder. The caller must have checked the path's parent folders."""
        path = os.fsencode(path)
        scope: IgnoreScope | None = self
        while scope is not None:
            for rules in scope.rules:
                if rules.matches(path[len(scope.folder) :], is_folder=is_folder):
                    return rules.is_ignored
            scope = scope.parent
        return False

    def for_subfolder(self, folder: str | bytes, *, is_repository: bool) -> "IgnoreScope":
        """Return the rules that apply in a subfolder. The root of a repository doesn't inherit rules."""
        folder = os.fsencode(folder).rstrip(b"/") + b"/"
        parent = self
        if is_repository:
            parent = IgnoreScope(folder, _read_rules(folder + GIT + b"/info/exclude", follow_symlink=True))
        rules = _read_rules(folder + FILE_NAME)  # git doesn't follow a symbolic link to it, either
        return IgnoreScope(folder, rules, parent) if rules else parent


def load_ignore_scope(folder: Path) -> IgnoreScope:
    """Return the rules that apply in a folder, including those of its parent folders up to the repository root."""
    chain = [folder, *folder.parents]
    repository = next((parent for parent in chain if (parent / ".git").exists()), chain[-1])
    ignores = IgnoreScope()
    for ancestor in reversed(chain[: chain.index(repository) + 1]):
        ignores = ignores.for_subfolder(os.fsencode(ancestor), is_repository=(ancestor / ".git").exists())
    return ignores


@lru_cache(maxsize=64)
def parse_rules(content: bytes) -> tuple[IgnoreRuleGroup, ...]:
    """Parse a .gitignore file into rules. If there are too many wildcard rules, the first ones are dropped."""
    lines = content.removeprefix(_BOM).decode("latin-1").split("\n")  # bytes as characters, because git compares bytes
    rules = (rule for line in reversed(lines) if (rule := _parse_rule(line)) is not None)
    budget = MAX_WILDCARDS
    found: list[IgnoreRuleGroup] = []
    for is_negated, group in groupby(rules, key=lambda rule: rule.is_negated):
        run = dict.fromkeys(group)  # a repeated rule is compiled only once
        plain = [rule for rule in run if not rule.has_wildcards]
        wild = [rule.expression for rule in islice((rule for rule in run if rule.has_wildcards), budget)]
        budget -= len(wild)
        names = frozenset(_encode_plain_rule(rule.body, rule) for rule in plain if "/" not in rule.body)
        paths = frozenset(_encode_plain_rule(rule.body.removeprefix("/"), rule) for rule in plain if "/" in rule.body)
        parts = ("|".join(wild[at : at + EXPRESSION_RULES]) for at in range(0, len(wild), EXPRESSION_RULES))
        wildcards = tuple(re.compile(part.encode("latin-1"), re.DOTALL) for part in parts)
        if names or paths or wildcards:
            found.append(IgnoreRuleGroup(not is_negated, names, paths, wildcards))
    return tuple(found)


class _Rule(NamedTuple):
    body: str
    is_negated: bool
    is_for_folders: bool

    @property
    def has_wildcards(self) -> bool:
        return _WILDCARD.search(self.body) is not None

    @property
    def expression(self) -> str:
        # A slash anywhere but at the end anchors a pattern to its folder.
        prefix = "" if "/" in self.body else "(?:[^/]+/)*"
        return f"{prefix}{wildcard_to_regex(self.body)}{'//' if self.is_for_folders else '(?://)?'}"


def _encode_plain_rule(text: str, rule: _Rule) -> bytes:
    return text.encode("latin-1") + (b"//" if rule.is_for_folders else b"")


def _parse_rule(line: str) -> _Rule | None:
    line = _strip_trailing_blanks(line.removesuffix("\r").partition("\0")[0])
    if line.startswith("#"):
        return None
    body = line.removeprefix("!")
    name = body.removesuffix("/")
    return _Rule(name, line != body, name != body) if name else None


def _strip_trailing_blanks(line: str) -> str:
    stripped = line.rstrip(" ")
    is_escaped = stripped != line and (len(stripped) - len(stripped.rstrip("\\"))) % 2 == 1
    return stripped + " " if is_escaped else stripped


def _read_rules(path: bytes, *, follow_symlink: bool = False) -> tuple[IgnoreRuleGroup, ...]:
    """Return the rules in a file, or an empty tuple if the file is missing or can't be read."""
    try:
        return parse_rules(read_start(path, MAX_FILE_BYTES, follow_symlink=follow_symlink))
    except OSError:
        return ()
