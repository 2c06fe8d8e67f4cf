"""Stores the working directory of each editor session in a file in the home."""

from pathlib import Path

import msgspec
from msgspec import Struct

from hark.disk.line_file import append_line


class SessionFolder(Struct, frozen=True):
    """One line of the file: a session and its folder. The last line for a session overrides earlier ones."""

    session: str
    folder: str


class EditorSessionFile:
    """The file with the working directories of editor sessions. Several processes may append to it."""

    def __init__(self, home: Path) -> None:
        self._path = home / "editor-sessions.jsonl"

    def add(self, session: str, folder: str) -> None:
        """Record the folder of a session.

        Raises:
            OSError: The file can't be written.
        """
        if self.folders().get(session) == folder:
            return
        append_line(self._path, msgspec.json.encode(SessionFolder(session, folder)))

    def folders(self) -> dict[str, str]:
        """Return each session's folder. Unreadable lines are skipped."""
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError:
            return {}
        folders: dict[str, str] = {}
        for text in lines:
            try:
                line = msgspec.json.decode(text, type=SessionFolder)
            except msgspec.MsgspecError:
                continue  # a partial line, left by a full disk
            folders[line.session] = line.folder
        return folders
