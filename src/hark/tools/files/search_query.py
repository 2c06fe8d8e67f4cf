"""A search query, for ripgrep and for the built-in search program."""

import re
from functools import cached_property

from msgspec import Struct

from hark.tools.files.globs import Glob, parse_glob

_PLAIN_GLOB = re.compile(r"[\w.*?-]+")


class GrepQuery(Struct, frozen=True, dict=True):
    """A search query. The search program runs in the folder to search.

    `target` is the path to search: `.` or `./file`. `folder` is the searched folder's path relative to the workspace,
    because a glob may be relative to either. `shows` is lines, files, counts, or names for all files to search.
    """

    pattern: str
    is_literal: bool = False
    ignores_case: bool = False
    glob: str = ""
    context: int = 0
    shows: str = "lines"
    target: str = "."
    folder: str = ""
    includes_ignored: bool = False

    def includes(self, path: str) -> bool:
        """Return whether a file's path relative to the folder matches the glob. Without a glob, every file matches."""
        return self._glob.matches(path, f"{self.folder}/{path}")

    @cached_property
    def _glob(self) -> Glob:
        return parse_glob(self.glob)

    def ripgrep_command(self, program: str) -> list[str]:
        """Return the ripgrep command line. The command may search more files than the query includes, never fewer."""
        command = [program, "--no-config", "--color=never", "--no-messages", "--sort=path", "--crlf", "--hidden"]
        command += ["--no-require-git", "--no-ignore-dot", "--no-ignore-global", "--glob=!.git"]
        if self.includes_ignored:
            command.append("--no-ignore")
        names = self._glob.names
        if names and all(_PLAIN_GLOB.fullmatch(name) for name in names):
            command += [*(f"--type-add=wanted:{name}" for name in names), "--type=wanted"]
        if self.shows == "names":
            return [*command, "--files", "--", self.target]
        command += ["--ignore-case" if self.ignores_case else "--case-sensitive", "--null", "--with-filename"]
        if self.is_literal:
            command.append("--fixed-strings")
        if self.target != ".":
            command.append("--text")  # the caller has checked the file
        if self.shows == "lines":
            command += ["--no-heading", "--column", f"--context={self.context}", "--no-context-separator"]
            command.append(r"--field-match-separator=\x00")
        else:
            command += ["--count", *(["--max-count=1"] if self.shows == "files" else [])]
        return [*command, "--regexp", self.pattern, "--", self.target]
