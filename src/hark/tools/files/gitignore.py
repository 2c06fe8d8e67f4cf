"""What .gitignore files leave out, as git reads them."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from hark.tools.files.globs import translate

FILE_NAME = ".gitignore"
LARGEST_BYTES = 1_000_000


class Rule(Struct, frozen=True):
    """One line: what it matches below its folder, whether it takes back what others said, and is for folders only."""

    pattern: re.Pattern[str]
    is_taken_back: bool
    is_for_folders: bool


class Ignores(Struct, frozen=True):
    """The rules that hold in a folder: its own, then those above it. `folder` ends with a slash."""

    folder: str = ""
    rules: tuple[Rule, ...] = ()
    above: "Ignores | None" = None

    def is_ignored(self, path: str, is_folder: bool) -> bool:
        """Tell whether a path in this folder is left out; the nearest file's last rule that matches decides."""
        scope: Ignores | None = self
        while scope is not None:
            inside = path.removeprefix(scope.folder)
            for rule in reversed(scope.rules):
                if (is_folder or not rule.is_for_folders) and rule.pattern.fullmatch(inside):
                    return not rule.is_taken_back
            scope = scope.above
        return False

    def below(self, folder: str) -> "Ignores":
        """Return the rules of a folder below: its own .gitignore too, if it has one."""
        rules = read_rules(Path(folder) / FILE_NAME)
        if (Path(folder) / ".git").exists():  # another repository: what is above does not hold in it
            return _repository(folder, rules)
        return Ignores(_with_slash(folder), rules, self) if rules else self


def ignores_of(folder: Path) -> Ignores:
    """Return the rules that hold in a folder, with those of the folders above it up to the repository's."""
    chain = [folder, *folder.parents]
    top = next((at for at, one in enumerate(chain) if (one / ".git").exists()), len(chain) - 1)
    ignores = Ignores()
    for one in reversed(chain[: top + 1]):
        ignores = ignores.below(str(one))
    return ignores


def parse_rules(lines: Iterable[str]) -> tuple[Rule, ...]:
    """Return the rules in a .gitignore file's lines."""
    return tuple(rule for line in lines if (rule := _rule(line)) is not None)


def read_rules(path: Path) -> tuple[Rule, ...]:
    """Return a file's rules; none if it is not there, or can't be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ()
    try:
        content = os.read(descriptor, LARGEST_BYTES)
    except OSError:
        return ()
    finally:
        os.close(descriptor)
    return parse_rules(content.removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape").split("\n"))


def _repository(folder: str, rules: tuple[Rule, ...]) -> Ignores:
    excluded = read_rules(Path(folder) / ".git" / "info" / "exclude")
    return Ignores(_with_slash(folder), rules, Ignores(_with_slash(folder), excluded) if excluded else None)


def _with_slash(folder: str) -> str:
    return folder.rstrip("/") + "/"


def _rule(line: str) -> Rule | None:
    line = line.removesuffix("\r")
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    if not line or line.startswith("#"):
        return None
    is_taken_back = line.startswith("!")
    body = line[is_taken_back:]
    is_for_folders = body.endswith("/")
    body = body.removesuffix("/")
    if not body:
        return None
    # A slash anywhere but at the end ties a pattern to its own folder.
    expression = translate(body.removeprefix("/")) if "/" in body else f"(?:.*/)?{translate(body)}"
    return Rule(re.compile(expression, re.DOTALL), is_taken_back, is_for_folders)
