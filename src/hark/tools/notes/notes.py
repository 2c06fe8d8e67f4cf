"""Persistent notes: Markdown lists in files in Hark's home, which users may also edit by hand."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hark.disk.file_lock import lock_file
from hark.disk.private_files import replace_file
from hark.protocol.tool import ToolError

MAX_FILE_BYTES = 20_000
MAX_NOTE_CHARACTERS = 1_000
MAX_READ_BYTES = 4 * MAX_FILE_BYTES  # a user may have written more than Hark allows
_ITEM = re.compile(r"[-*+] +(?=\S)")


@dataclass(frozen=True, slots=True)
class NotesFile:
    """One list of notes in a Markdown file. The title is written at the top of a new file."""

    path: Path
    title: str

    def read(self) -> list[str]:
        """Return the notes, oldest first, or an empty list if the file is missing.

        Raises:
            OSError: The file can't be read.
        """
        text = self._read_content(MAX_READ_BYTES).decode(errors="replace")
        return [note for _, _, note in _parse_notes(text)]

    def change(self, edit: Callable[[str], str]) -> None:
        """Replace the file's text with `edit(text)`. The change is durable when this returns. Blocks the caller.

        Raises:
            ToolError: `edit` raised it, or the file is full.
            OSError: The change may not have been saved.
        """
        with lock_file(self.path.with_name(".lock")):
            old = self._read_content()
            text = old.decode(errors="surrogateescape")  # preserves any bytes that the user wrote
            new = edit(text or f"# {self.title}\n\n").encode(errors="surrogateescape")
            if len(new) > max(len(old), MAX_FILE_BYTES):
                raise ToolError(
                    f"These notes are full ({MAX_FILE_BYTES:,} bytes), so nothing was stored. Remove or replace "
                    "notes that are no longer needed, then add this one again."
                )
            replace_file(self.path, new)

    def _read_content(self, limit: int = -1) -> bytes:
        try:
            with self.path.open("rb") as file:
                return file.read(limit)
        except FileNotFoundError:
            return b""


def user_notes(home: Path) -> NotesFile:
    """Return the user's notes, which apply everywhere."""
    return NotesFile(home / "memory" / "user.md", "Notes about the user")


def project_notes(home: Path, workspace: Path) -> NotesFile:
    """Return the notes that apply in a workspace."""
    path = str(workspace.resolve())
    name = hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()[:16]
    return NotesFile(home / "memory" / "projects" / f"{name}.md", f"Notes on {path}")


def normalize_note(text: str) -> str:
    """Normalise a note to one line.

    Raises:
        ToolError: The text is empty, or too long for a note.
    """
    note = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    if not note:
        raise ToolError("The note is empty. Give its text in `text`.")
    if len(note) > MAX_NOTE_CHARACTERS:
        raise ToolError(
            f"A note has at most {MAX_NOTE_CHARACTERS:,} characters, and this has {len(note):,}. Nothing was stored. "
            "Shorten it, or write a file in the project and note where it is."
        )
    return note


def add_note(text: str, note: str) -> str:
    """Return the text with a note appended, unless it already contains that note."""
    if any(known == note for _, _, known in _parse_notes(text)):
        return text
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}- {note}\n"


def replace_note(text: str, old: str, note: str) -> str:
    """Return the text with the note that contains `old` replaced by `note`.

    Raises:
        ToolError: No note contains `old`, or several do.
    """
    start, end = _find_note(text, old)
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:start], f"- {note}\n", *lines[end:]])


def remove_note(text: str, old: str) -> str:
    """Return the text without the note that contains `old`.

    Raises:
        ToolError: No note contains `old`, or several do.
    """
    start, end = _find_note(text, old)
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:start], *lines[end:]])


def _parse_notes(text: str) -> list[tuple[int, int, str]]:
    """Parse the list items. Return each item's first line number, the line number after its end, and its text."""
    lines = text.splitlines()
    found: list[tuple[int, int, str]] = []
    for number, line in enumerate(lines):
        item = _ITEM.match(line)
        if item:
            found.append((number, number + 1, line[item.end() :].strip()))
        elif found and found[-1][1] == number and line[:1] in (" ", "\t") and line.strip():
            start, _, item_text = found[-1]
            found[-1] = (start, number + 1, f"{item_text} {line.strip()}")
    return found


def _find_note(text: str, old: str) -> tuple[int, int]:
    wanted = " ".join(old.split()).casefold()
    if not wanted:
        raise ToolError("Give part of the note's text in `old`.")
    notes = _parse_notes(text)
    same = [note for note in notes if note[2].casefold() == wanted]
    matches = same[:1] or [note for note in notes if wanted in " ".join(note[2].split()).casefold()]
    if not matches:
        raise ToolError("No note contains this text; nothing was changed. The list action shows all notes.")
    if len(matches) > 1:
        raise ToolError(f"{len(matches)} notes contain this text; nothing was changed. Give a longer part of the note.")
    return matches[0][:2]
