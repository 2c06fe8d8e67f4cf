"""What is being typed, kept so that no exit and no crash loses it."""

import contextlib
from collections.abc import Container
from pathlib import Path

from hark.disk.private_files import replace_private


class SavedDraft:
    """One session's unsent text in a file. A disk that refuses costs nothing but the draft's safety."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._saved = ""

    @property
    def has_text(self) -> bool:
        """True when something is kept."""
        return bool(self._saved)

    def read(self) -> str:
        """Return what was left unsent."""
        try:
            self._saved = self._path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            self._saved = ""
        return self._saved

    def save(self, text: str) -> None:
        """Keep this text; an empty one removes the draft."""
        if text == self._saved:
            return
        self._saved = text
        with contextlib.suppress(OSError):
            if not text:
                self._path.unlink(missing_ok=True)
                return
            replace_private(self._path, text.encode(), is_durable=False)


def adopt(folder: Path, session: str, known: Container[str]) -> None:
    """Give a new session the last text that was left unsent where nothing was ever sent: nobody would resume that."""
    with contextlib.suppress(OSError):
        left = [path for path in folder.iterdir() if path.name not in known and path.suffix != ".new"]
        if left:
            max(left, key=lambda path: path.stat().st_mtime).replace(folder / session)
