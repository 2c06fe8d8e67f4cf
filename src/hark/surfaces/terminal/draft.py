"""What is being typed, kept so that no exit and no crash loses it."""

import contextlib
from collections.abc import Container
from pathlib import Path


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
            self._path.parent.mkdir(parents=True, exist_ok=True)
            partial = self._path.with_name(f"{self._path.name}.new")
            partial.write_text(text, "utf-8")
            partial.chmod(0o600)
            partial.replace(self._path)


def adopt(folder: Path, session: str, known: Container[str]) -> None:
    """Give a new session the last text that was left unsent where nothing was ever sent: nobody would resume that."""
    with contextlib.suppress(OSError):
        left = [path for path in folder.iterdir() if path.name not in known and path.suffix != ".new"]
        if left:
            max(left, key=lambda path: path.stat().st_mtime).replace(folder / session)
