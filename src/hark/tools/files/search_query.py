"""What is searched for, and where: the same for every way to search."""

import re
from functools import cached_property

from msgspec import Struct

from hark.tools.files.globs import alternatives, compile_glob

_PLAIN_GLOB = re.compile(r"[\w.*?-]+")


class GrepQuery(Struct, frozen=True, dict=True):
    """A search below the folder that it runs in.

    `target` is what to look into: `.` or `./file`. `folder` is that folder's path from the workspace, so that a glob
    may be meant from either. `shows`: lines, files or counts.
    """

    pattern: str
    is_literal: bool = False
    ignores_case: bool = False
    glob: str = ""
    context: int = 0
    shows: str = "lines"
    target: str = "."
    folder: str = ""

    def wants(self, path: str) -> bool:
        """Tell whether a file below the folder is one to look into."""
        if not self.glob:
            return True
        return any(self._glob.fullmatch(name) for name in (path, f"{self.folder}/{path}"))

    @cached_property
    def _glob(self) -> re.Pattern[str]:
        return compile_glob(self.glob)

    def ripgrep_words(self, program: str) -> list[str]:
        """Return the command that searches with ripgrep; it may look into more files than are wanted, never fewer."""
        words = [program, "--no-config", "--color=never", "--no-messages", "--sort=path", "--crlf", "--hidden"]
        words += ["--no-require-git", "--no-ignore-dot", "--no-ignore-global", "--glob=!.git"]
        if self.is_literal:
            words.append("--fixed-strings")
        words.append("--ignore-case" if self.ignores_case else "--case-sensitive")
        if self.shows == "lines":
            words += ["--json", f"--context={self.context}"]
        else:
            words += ["--count", "--null", "--with-filename", *(["--max-count=1"] if self.shows == "files" else [])]
        names = alternatives(self.glob) if self.glob else []
        if names and all(_PLAIN_GLOB.fullmatch(name) for name in names):
            words += [*(f"--type-add=wanted:{name}" for name in names), "--type=wanted"]
        return [*words, "--regexp", self.pattern, "--", self.target]
