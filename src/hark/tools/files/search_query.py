"""A search query, for ripgrep and for the built-in search program."""

import re
from functools import cached_property

from msgspec import Struct

from hark.tools.files.globs import compile_glob, expand_braces

_PLAIN_GLOB = re.compile(r"[\w.*?-]+")


class GrepQuery(Struct, frozen=True, dict=True):
    """A search query. The search program runs in the folder to search.

    `target` is the path to search: `.` or `./file`. `folder` is the searched folder's path relative to the workspace,
    because a glob may be relative to either. `shows` is lines, files or counts.
    """

    pattern: str
    is_literal: bool = False
    ignores_case: bool = False
    glob: str = ""
    context: int = 0
    shows: str = "lines"
    target: str = "."
    folder: str = ""

    def includes(self, path: str) -> bool:
        """Return whether a file's path relative to the folder matches the glob. Without a glob, every file matches."""
        if not self.glob:
            return True
        return any(self._glob.fullmatch(name) for name in (path, f"{self.folder}/{path}"))

    @cached_property
    def _glob(self) -> re.Pattern[str]:
        return compile_glob(self.glob)

    def ripgrep_command(self, program: str) -> list[str]:
        """Return the ripgrep command line. The command may search more files than the query includes, never fewer."""
        command = [program, "--no-config", "--color=never", "--no-messages", "--sort=path", "--crlf", "--hidden"]
        command += ["--no-require-git", "--no-ignore-dot", "--no-ignore-global", "--glob=!.git"]
        if self.is_literal:
            command.append("--fixed-strings")
        command.append("--ignore-case" if self.ignores_case else "--case-sensitive")
        if self.shows == "lines":
            command += ["--json", f"--context={self.context}"]
        else:
            command += ["--count", "--null", "--with-filename", *(["--max-count=1"] if self.shows == "files" else [])]
        names = expand_braces(self.glob) if self.glob else []
        if names and all(_PLAIN_GLOB.fullmatch(name) for name in names):
            command += [*(f"--type-add=wanted:{name}" for name in names), "--type=wanted"]
        return [*command, "--regexp", self.pattern, "--", self.target]
