"""Which folder each session of an editor works in, kept in a file of the home."""

from pathlib import Path

import msgspec
from msgspec import Struct

from hark.disk.private_files import append_private


class SessionFolder(Struct, frozen=True):
    """A line of the file; of several about a session the last counts."""

    session: str
    folder: str


class EditorSessions:
    """The file. Any number of processes may add to it."""

    def __init__(self, home: Path) -> None:
        self._path = home / "editor-sessions.jsonl"

    def add(self, session: str, folder: str) -> None:
        """Note where a session works.

        Raises:
            OSError: It can't be written.
        """
        if self.folders().get(session) == folder:
            return
        append_private(self._path, msgspec.json.encode(SessionFolder(session, folder)) + b"\n", is_durable=False)

    def folders(self) -> dict[str, str]:
        """Return each session's folder. What can't be read is not there."""
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError:
            return {}
        found: dict[str, str] = {}
        for text in lines:
            try:
                line = msgspec.json.decode(text, type=SessionFolder)
            except msgspec.MsgspecError:
                continue  # half a line, as a full disk leaves it
            found[line.session] = line.folder
        return found
