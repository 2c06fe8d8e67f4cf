"""Text that outlives the app: the history of sent texts, and the draft that was not sent."""

import contextlib
from collections.abc import Container
from pathlib import Path

import msgspec

from hark.disk.private_files import append_private, replace_private

KEPT = 500


class History:
    """The texts, the oldest first. A file that can't be read or written costs nothing but itself."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._texts = _read(path)
        self._place = len(self._texts)
        self._unsent = ""

    def add(self, text: str) -> None:
        """Keep one more."""
        if not self._texts or self._texts[-1] != text:
            self._texts.append(text)
            self._append(text)
        self._place = len(self._texts)

    def older(self, now: str) -> str | None:
        """Return the text before; the first time, remember what is in the line `now`."""
        if self._place == len(self._texts):
            self._unsent = now
        if self._place == 0:
            return None
        self._place -= 1
        return self._texts[self._place]

    def newer(self) -> str | None:
        """Return the text behind; in the end what was in the line when the walk began."""
        if self._place >= len(self._texts):
            return None
        self._place += 1
        return self._unsent if self._place == len(self._texts) else self._texts[self._place]

    def _append(self, text: str) -> None:
        with contextlib.suppress(OSError):  # the history of this run is still there
            append_private(self._path, msgspec.json.encode(text) + b"\n", is_durable=False)


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


def _read(path: Path) -> list[str]:
    try:
        lines = path.read_bytes().splitlines()[-KEPT:]
    except OSError:
        return []
    texts: list[str] = []
    for line in lines:
        try:
            texts.append(msgspec.json.decode(line, type=str))
        except msgspec.MsgspecError:
            continue  # a line that a crash cut
    return texts
