"""What the word at the cursor could become: a slash command, or a file behind an @."""

import heapq
import os
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from hark.protocol.agent import CommandLine

MOST = 8
MOST_FILES = 20_000
_SKIPPED = {".git", "node_modules", "__pycache__", ".venv", "venv", "target", "dist", "build", ".tox", ".mypy_cache"}
_FILE = re.compile(r"(?:^|\s)@([^\s@]*)$")
_COMMAND = re.compile(r"^/([a-z]*)$")


class Completion:
    """Finds completions. The files of the workspace are listed anew at each new @, in a thread: disks may be slow."""

    def __init__(self, workspace: Path, commands: Sequence[CommandLine], listed: Callable[[], None]) -> None:
        """`listed` is called, in that thread, when the files are known."""
        self._workspace = workspace
        self._commands = commands
        self._listed = listed
        self._files: list[str] = []
        self._is_listing = False
        self._last: tuple[str, list[str]] = ("", [])

    def find(self, before: str) -> list[tuple[str, str]]:
        """Return what could stand instead of the last word of the text before the cursor, each with what to show."""
        if match := _COMMAND.search(before):
            return [
                (f"/{command.name}", f"/{command.name} {command.takes} — {command.help}")
                for command in self._commands
                if command.name.startswith(match[1])
            ][:MOST]
        if match := _FILE.search(before):
            if not match[1] or not self._files:
                self._list()
            return [(f"@{path}", path) for path in self._matching(match[1])]
        return []

    def _list(self) -> None:
        if not self._is_listing:
            self._is_listing = True
            threading.Thread(target=self._walk, name="files", daemon=True).start()

    def _walk(self) -> None:
        files = _files(self._workspace)
        self._is_listing = False
        if files != self._files:
            self._files, self._last = files, ("", [])
            self._listed()

    def _matching(self, part: str) -> list[str]:
        """Return the files that have the letters in order, the best first. What fits more letters fitted fewer."""
        wanted = part.lower()
        before, found = self._last
        files = found if before and wanted.startswith(before) else self._files
        letters = re.compile(".*?".join(map(re.escape, wanted)))
        found = [path for path in files if letters.search(path.lower())]
        self._last = wanted, found
        return heapq.nsmallest(MOST, found, key=lambda path: _rank(path.lower(), wanted))


def word_length(before: str) -> int:
    """Return how many characters before the cursor a completion replaces."""
    match = _COMMAND.search(before) or _FILE.search(before)
    return len(match[1]) + 1 if match else 0


def _rank(path: str, wanted: str) -> tuple[int, int, str]:
    name = path.rpartition("/")[2]
    for place, is_so in enumerate((path.startswith(wanted), name.startswith(wanted), wanted in path)):
        if is_so:
            return place, len(path), path
    return 3, len(path), path


def _files(workspace: Path) -> list[str]:
    """Return the workspace's files, up to a number that takes no time worth noticing."""
    found: list[str] = []
    for folder, folders, names in os.walk(workspace):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        inside = os.path.relpath(folder, workspace)
        found.extend(name if inside == "." else f"{inside}/{name}" for name in sorted(names))
        if len(found) >= MOST_FILES:
            break
    return found
