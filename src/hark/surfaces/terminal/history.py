"""The user's stored input: the input history and the unsent drafts."""

import contextlib
from collections.abc import Container
from pathlib import Path

import msgspec

from hark.disk.private_files import append_log, replace_file

MAX_ENTRIES = 500


class History:
    """The input history, oldest entry first. Errors when reading or writing the file are ignored."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._texts = _read_history(path)
        self._index = len(self._texts)
        self._unsent = ""

    def add(self, text: str) -> None:
        """Add an input history entry, unless it equals the last entry."""
        if not self._texts or self._texts[-1] != text:
            self._texts.append(text)
            with contextlib.suppress(OSError):  # the history of this run stays in memory
                append_log(self._path, msgspec.json.encode(text) + b"\n")
        self._index = len(self._texts)

    def older(self, current: str) -> str | None:
        """Return the previous entry, or None at the oldest. The first call stores `current`, the unsent text."""
        if self._index == len(self._texts):
            self._unsent = current
        if self._index == 0:
            return None
        self._index -= 1
        return self._texts[self._index]

    def newer(self) -> str | None:
        """Return the next entry. After the newest, return the unsent text that `older` stored, then None."""
        if self._index >= len(self._texts):
            return None
        self._index += 1
        return self._unsent if self._index == len(self._texts) else self._texts[self._index]


class SavedDraft:
    """One session's unsent text, stored in a file. Write errors are ignored."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.text = ""  # the stored text

    def read(self) -> str:
        """Return the stored draft, or "" if there is none."""
        try:
            self.text = self._path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            self.text = ""
        return self.text

    def save(self, text: str) -> None:
        """Store the text. An empty text deletes the draft."""
        if text == self.text:
            return
        self.text = text
        with contextlib.suppress(OSError):
            if not text:
                self._path.unlink(missing_ok=True)
                return
            replace_file(self._path, text.encode(), is_durable=False)


def adopt_orphaned_draft(directory: Path, session: str, known_sessions: Container[str]) -> None:
    """Move the newest draft of an unknown session to `session`, because the unknown session can't be resumed."""
    with contextlib.suppress(OSError):
        orphans = [path for path in directory.iterdir() if path.name not in known_sessions and path.suffix != ".new"]
        if orphans:
            max(orphans, key=lambda path: path.stat().st_mtime).replace(directory / session)


def _read_history(path: Path) -> list[str]:
    try:
        lines = path.read_bytes().splitlines()[-MAX_ENTRIES:]
    except OSError:
        return []
    texts: list[str] = []
    for line in lines:
        try:
            texts.append(msgspec.json.decode(line, type=str))
        except msgspec.MsgspecError:
            continue  # a line that a crash truncated
    return texts
