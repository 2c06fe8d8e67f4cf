"""The list of completions above the input line, and what is chosen in it."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from textual.content import Content
from textual.widgets import Static

from hark.protocol.agent import CommandLine
from hark.surfaces.terminal.completion import Completion, word_length
from hark.surfaces.terminal.widgets.composer import Composer
from hark.text.safe_text import safe_line


class CompletionList(Static):
    """Shown while the word at the cursor could become something; arrows choose, Tab or Enter completes."""

    def __init__(self, composer: Composer, workspace: Path, commands: Sequence[CommandLine]) -> None:
        super().__init__("", id="choices", markup=False)
        self._composer = composer
        self._completion = Completion(workspace, commands, self._listed)
        self._found: list[tuple[str, str]] = []
        self._chosen = 0
        self._loop = asyncio.get_running_loop()
        self.display = False

    def look(self) -> None:
        """Look what could be completed now."""
        before = self._before_cursor()
        found = self._completion.find(before) if before[-1:].strip() else []
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
        start = column - word_length(self._before_cursor())
        word, self._found = self._found[self._chosen][0], []
        self._composer.replace(f"{word} ", (row, start), (row, column))

    def _before_cursor(self) -> str:
        row, column = self._composer.cursor_location
        return self._composer.document.get_line(row)[:column]

    def _listed(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: the app is gone
            self._loop.call_soon_threadsafe(self.look)

    def _draw(self) -> None:
        self.display = self._composer.has_choices = bool(self._found)
        rows = [
            Content.styled(
                f"{'›' if place == self._chosen else ' '} {safe_line(text)}", "bold" if place == self._chosen else ""
            )
            for place, (_, text) in enumerate(self._found)
        ]
        self.update(Content("\n").join(rows))
