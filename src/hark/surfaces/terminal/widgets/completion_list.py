"""The completion list above the input line: slash commands, and file names after an @."""

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

from hark.protocol.agent import CommandInfo
from hark.surfaces.terminal.widgets.composer import Composer
from hark.text.safe_text import sanitize_line

MAX_COMPLETIONS = 8
MAX_FILES = 20_000
_SKIPPED = {".git", "node_modules", "__pycache__", ".venv", "venv", "target", "dist", "build", ".tox", ".mypy_cache"}
_FILE = re.compile(r"(?:^|\s)@([^\s@]*)$")
_COMMAND = re.compile(r"^/([a-z]*)$")


class CompletionList(Static):
    """Shows completions for the word at the cursor. The arrow keys select one; Tab or Enter completes it.

    The workspace's files are listed again for each new @, in a thread because disks may be slow.
    """

    def __init__(self, composer: Composer, workspace: Path, commands: Sequence[CommandInfo]) -> None:
        super().__init__("", id="choices", markup=False)
        self._composer = composer
        self._workspace = workspace
        self._commands = commands
        self._files: list[str] = []
        self._is_listing = False
        self._last_match: tuple[str, list[str]] = ("", [])
        self._completions: list[tuple[str, str]] = []
        self._selected = 0
        self._loop = asyncio.get_running_loop()
        self.display = False

    def update_completions(self) -> None:
        """Update the list for the text before the cursor."""
        before = self._composer.text_before_cursor()
        found = self._find_completions(before) if before[-1:].strip() else []
        if found and before.endswith(found[0][0]):
            found = []  # the word is already complete
        if found != self._completions:
            self._completions = found
            self._selected = 0
        self._draw()

    def handle_action(self, action: str) -> bool:
        """Run an action on the list. Return False if the list doesn't handle the action."""
        match action:
            case "choice_up" | "choice_down" if self._completions:
                self._selected = (self._selected + (1 if action == "choice_down" else -1)) % len(self._completions)
                self._draw()
            case "complete" if self._completions:
                self._complete()
            case "stop":
                self._completions = []
                self._draw()
                return False
            case _:
                return action in ("choice_up", "choice_down", "complete")
        return True

    def _complete(self) -> None:
        row, column = self._composer.cursor_location
        before = self._composer.text_before_cursor()
        match = _COMMAND.search(before) or _FILE.search(before)
        start = column - (len(match[1]) + 1 if match else 0)
        word, self._completions = self._completions[self._selected][0], []
        self._composer.replace(f"{word} ", (row, start), (row, column))

    def _draw(self) -> None:
        self.display = self._composer.has_completions = bool(self._completions)
        rows = [
            Content.styled(
                f"{'›' if place == self._selected else ' '} {sanitize_line(text)}",
                "bold" if place == self._selected else "",
            )
            for place, (_, text) in enumerate(self._completions)
        ]
        self.update(Content("\n").join(rows))

    def _find_completions(self, text_before: str) -> list[tuple[str, str]]:
        """Return the completions for the word before the cursor, each as replacement and displayed text."""
        if match := _COMMAND.search(text_before):
            return [
                (f"/{command.name}", f"/{command.name} {command.takes} — {command.help}")
                for command in self._commands
                if command.name.startswith(match[1])
            ][:MAX_COMPLETIONS]
        if match := _FILE.search(text_before):
            if (not match[1] or not self._files) and not self._is_listing:
                self._is_listing = True
                threading.Thread(target=self._list_files_in_thread, name="files", daemon=True).start()
            return [(f"@{path}", path) for path in self._match_files(match[1])]
        return []

    def _list_files_in_thread(self) -> None:
        files = _list_files(self._workspace)
        self._is_listing = False
        if files != self._files:
            self._files, self._last_match = files, ("", [])
            with suppress(RuntimeError):  # the loop is closed because the app has exited
                self._loop.call_soon_threadsafe(self.update_completions)

    def _match_files(self, query: str) -> list[str]:
        """Return the paths that contain the query's characters in order, best first. Longer queries reuse the last
        result.
        """
        wanted = query.lower()
        before, found = self._last_match
        files = found if before and wanted.startswith(before) else self._files
        pattern = re.compile(".*?".join(map(re.escape, wanted)))
        found = [path for path in files if pattern.search(path.lower())]
        self._last_match = wanted, found
        return heapq.nsmallest(MAX_COMPLETIONS, found, key=lambda path: _rank_match(path.lower(), wanted))


def _rank_match(path: str, query: str) -> tuple[int, int, str]:
    name = path.rpartition("/")[2]
    for rank, is_match in enumerate((path.startswith(query), name.startswith(query), query in path)):
        if is_match:
            return rank, len(path), path
    return 3, len(path), path


def _list_files(workspace: Path) -> list[str]:
    """Return the workspace's files, up to about MAX_FILES so that listing stays fast."""
    found: list[str] = []
    for folder, folders, names in os.walk(workspace):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        inside = os.path.relpath(folder, workspace)
        found.extend(name if inside == "." else f"{inside}/{name}" for name in sorted(names))
        if len(found) >= MAX_FILES:
            break
    return found
