"""Notes that last: Markdown lists in files of the home, which people edit by hand too."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hark.protocol.tool import ToolError
from hark.tools.notes.locked_file import locked, replace_file

FILE_BYTES = 20_000
NOTE_CHARACTERS = 1_000
READ_BYTES = 4 * FILE_BYTES  # a person may have written more than Hark would
_ITEM = re.compile(r"[-*+] +(?=\S)")


@dataclass(frozen=True, slots=True)
class NotesFile:
    """One list of notes: where it is, and what stands above it when it is new."""

    path: Path
    title: str

    def read(self) -> list[str]:
        """Return the notes, the oldest first; a file that isn't there has none.

        Raises:
            OSError: It can't be read.
        """
        text = self._content(READ_BYTES).decode(errors="replace")
        return [note for _, _, note in _find(text)]

    def change(self, edit: Callable[[str], str]) -> None:
        """Put what `edit` makes of the text in its place: durable when this returns. Blocks the caller.

        Raises:
            ToolError: By `edit`, or there is no room.
            OSError: It is not certain that it was done.
        """
        with locked(self.path.with_name(".lock")):
            old = self._content()
            text = old.decode(errors="surrogateescape")  # what a person wrote stays, whatever it is
            new = edit(text or f"# {self.title}\n\n").encode(errors="surrogateescape")
            if len(new) > max(len(old), FILE_BYTES):
                raise ToolError(
                    f"These notes are full ({FILE_BYTES:,} bytes), and nothing was kept. Remove or replace what is no "
                    "longer needed, then add this again."
                )
            replace_file(self.path, new)

    def _content(self, limit: int = -1) -> bytes:
        try:
            with self.path.open("rb") as file:
                return file.read(limit)
        except FileNotFoundError:
            return b""


def notes_of_person(home: Path) -> NotesFile:
    """Return the notes that hold everywhere."""
    return NotesFile(home / "memory" / "user.md", "Notes about the person")


def notes_of_project(home: Path, workspace: Path) -> NotesFile:
    """Return the notes that hold in a directory."""
    place = str(workspace.resolve())
    name = hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:16]
    return NotesFile(home / "memory" / "projects" / f"{name}.md", f"Notes on {place}")


def as_note(text: str) -> str:
    """Return a text as one line.

    Raises:
        ToolError: It is empty, or too long to be a note.
    """
    note = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    if not note:
        raise ToolError("There is no text to keep. Say in `text` what the note is.")
    if len(note) > NOTE_CHARACTERS:
        raise ToolError(
            f"A note has at most {NOTE_CHARACTERS:,} characters, and this has {len(note):,}. Nothing was kept. Say it "
            "in fewer words, or keep a file in the project and note where it is."
        )
    return note


def added(text: str, note: str) -> str:
    """Return the text with a note at its end; one that is there already is not added again."""
    if any(known == note for _, _, known in _find(text)):
        return text
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}- {note}\n"


def replaced(text: str, old: str, note: str) -> str:
    """Return the text with a note in the place of the one that has `old` in it.

    Raises:
        ToolError: No note has it, or several have.
    """
    start, end = _place(text, old)
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:start], f"- {note}\n", *lines[end:]])


def removed(text: str, old: str) -> str:
    """Return the text without the note that has `old` in it.

    Raises:
        ToolError: No note has it, or several have.
    """
    start, end = _place(text, old)
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:start], *lines[end:]])


def _find(text: str) -> list[tuple[int, int, str]]:
    """Return each item of the list: its first line, the line behind it, and its words."""
    lines = text.splitlines()
    found: list[tuple[int, int, str]] = []
    for place, line in enumerate(lines):
        item = _ITEM.match(line)
        if item:
            found.append((place, place + 1, line[item.end() :].strip()))
        elif found and found[-1][1] == place and line[:1] in (" ", "\t") and line.strip():
            start, _, words = found[-1]
            found[-1] = (start, place + 1, f"{words} {line.strip()}")
    return found


def _place(text: str, old: str) -> tuple[int, int]:
    wanted = " ".join(old.split()).casefold()
    if not wanted:
        raise ToolError("Say in `old` which note is meant: some words of it.")
    notes = _find(text)
    same = [note for note in notes if note[2].casefold() == wanted]
    matches = same[:1] or [note for note in notes if wanted in " ".join(note[2].split()).casefold()]
    if not matches:
        raise ToolError("No note has these words; nothing was changed. The action list shows what there is.")
    if len(matches) > 1:
        raise ToolError(f"{len(matches)} notes have these words; nothing was changed. Say more of the one you mean.")
    return matches[0][:2]
