"""The list above the input line: what the word at the cursor could become, a slash command or a file behind an @."""

import asyncio
import heapq
import os
import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from textual.content import Content
from textual.widgets import Static

from hark.protocol.agent import CommandLine
from hark.surfaces.terminal.widgets.composer import Composer
from hark.text.safe_text import safe_line

MOST = 8
MOST_FILES = 20_000
_SKIPPED = {".git", "node_modules", "__pycache__", ".venv", "venv", "target", "dist", "build", ".tox", ".mypy_cache"}
_FILE = re.compile(r"(?:^|\s)@([^\s@]*)$")
_COMMAND = re.compile(r"^/([a-z]*)$")


class CompletionList(Static):
    """Shown while the word at the cursor could become something; arrows choose, Tab or Enter completes.

    The files of the workspace are listed anew at each new @, in a thread: disks may be slow.
    """

    def __init__(self, composer: Composer, workspace: Path, commands: Sequence[CommandLine]) -> None:
        super().__init__("", id="choices", markup=False)
        self._composer = composer
        self._workspace = workspace
        self._commands = commands
        self._files: list[str] = []
        self._is_listing = False
        self._last: tuple[str, list[str]] = ("", [])
        self._found: list[tuple[str, str]] = []
        self._chosen = 0
        self._loop = asyncio.get_running_loop()
        self.display = False

    def look(self) -> None:
        """Look what could be completed now."""
        before = self._composer.before_cursor()
        found = self._find(before) if before[-1:].strip() else []
        if found and before.endswith(found[0][0]):
            found = []  # it stands there already
        if found != self._found:
            self._found = found
            self._chosen = 0
        self._draw()

    def do(self, act: str) -> bool:
        """Do what a key asks for; False when it is none of ours."""
        match act:
            case "choice_up" | "choice_down" if self._found:
                self._chosen = (self._chosen + (1 if act == "choice_down" else -1)) % len(self._found)
                self._draw()
            case "complete" if self._found:
                self._complete()
            case "stop":
                self._found = []
                self._draw()
                return False
            case _:
                return act in ("choice_up", "choice_down", "complete")
        return True

    def _complete(self) -> None:
        row, column = self._composer.cursor_location
        before = self._composer.before_cursor()
        match = _COMMAND.search(before) or _FILE.search(before)
        start = column - (len(match[1]) + 1 if match else 0)
        word, self._found = self._found[self._chosen][0], []
        self._composer.replace(f"{word} ", (row, start), (row, column))

    def _draw(self) -> None:
        self.display = self._composer.has_choices = bool(self._found)
        rows = [
            Content.styled(
                f"{'›' if place == self._chosen else ' '} {safe_line(text)}", "bold" if place == self._chosen else ""
            )
            for place, (_, text) in enumerate(self._found)
        ]
        self.update(Content("\n").join(rows))

    def _find(self, before: str) -> list[tuple[str, str]]:
        """Return what could stand instead of the last word of the text before the cursor, each with what to show."""
        if match := _COMMAND.search(before):
            return [
                (f"/{command.name}", f"/{command.name} {command.takes} — {command.help}")
                for command in self._commands
                if command.name.startswith(match[1])
            ][:MOST]
        if match := _FILE.search(before):
            if (not match[1] or not self._files) and not self._is_listing:
                self._is_listing = True
                threading.Thread(target=self._walk, name="files", daemon=True).start()
            return [(f"@{path}", path) for path in self._matching(match[1])]
        return []

    def _walk(self) -> None:
        files = _files(self._workspace)
        self._is_listing = False
        if files != self._files:
            self._files, self._last = files, ("", [])
            with suppress(RuntimeError):  # the loop is closed: the app is gone
                self._loop.call_soon_threadsafe(self.look)

    def _matching(self, part: str) -> list[str]:
        """Return the files that have the letters in order, the best first. What fits more letters fitted fewer."""
        wanted = part.lower()
        before, found = self._last
        files = found if before and wanted.startswith(before) else self._files
        letters = re.compile(".*?".join(map(re.escape, wanted)))
        found = [path for path in files if letters.search(path.lower())]
        self._last = wanted, found
        return heapq.nsmallest(MOST, found, key=lambda path: _rank(path.lower(), wanted))


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
