"""Files with the whole of what processes printed, when that is more than a model is shown."""

import os
import secrets
import time
from pathlib import Path

# A little less than is shown whole, so that what is cut is always in the file.
SHORT_BYTES = 25_000
LONGEST_BYTES = 100_000_000
KEPT_BYTES = 1_000_000_000
KEPT_FILES = 300


class WholeOutput:
    """Takes bytes and writes them into a file once they are more than `short_bytes`. Without a path it keeps nothing.

    A disk that is full must not end a command: then the file has less, and `note` says so.
    """

    def __init__(self, path: Path | None, short_bytes: int = SHORT_BYTES) -> None:
        self._path = path
        self._short_bytes = short_bytes
        self._waiting = bytearray()
        self._written = 0
        self._descriptor: int | None = None
        self._problem = ""

    def add(self, piece: bytes) -> None:
        """Take a piece."""
        if self._path is None or self._problem:
            return
        self._waiting += piece
        if self._descriptor is not None or len(self._waiting) > self._short_bytes:
            self._write(self._path)

    def close(self) -> None:
        """Let go of the file: nothing more comes."""
        self._waiting.clear()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @property
    def path(self) -> Path | None:
        """Where it is, once there is more than a little; None when nothing is kept."""
        return self._path

    @property
    def note(self) -> str:
        """What to say of the file; "" when there is none."""
        if not self._written:
            return f"the output could not be kept in a file: {self._problem}" if self._problem else ""
        if self._problem:
            return f"its first {self._written:,} bytes are in {self._path}: {self._problem}"
        return f"the whole output is in {self._path}"

    def _write(self, path: Path) -> None:
        try:
            if self._descriptor is None:
                self._descriptor = _created(path)
            room = LONGEST_BYTES - self._written
            self._written += os.write(self._descriptor, self._waiting[:room])
        except OSError as error:
            self._problem = error.strerror or str(error)
        else:
            if len(self._waiting) > room:
                self._problem = f"no more than {LONGEST_BYTES:,} bytes are kept"
        self._waiting.clear()


class Outputs:
    """A folder of such files alone, which its owner alone can read; the oldest go when there are too many."""

    def __init__(self, folder: Path | None = None) -> None:
        """Without a folder nothing is written."""
        self._folder = folder

    @property
    def folder(self) -> Path | None:
        """Where they are."""
        return self._folder

    def new(self, name: str, short_bytes: int = SHORT_BYTES) -> WholeOutput:
        """Return a file that is not there yet; `name` is the beginning of its name."""
        if self._folder is None:
            return WholeOutput(None)
        moment = time.strftime("%Y%m%d-%H%M%S")
        return WholeOutput(self._folder / f"{name}-{moment}-{secrets.token_hex(3)}.txt", short_bytes)


def _created(path: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _prune(path.parent)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)


def _prune(folder: Path) -> None:
    try:
        with os.scandir(folder) as entries:
            found = ((entry.stat(follow_symlinks=False), entry.path) for entry in entries if entry.is_file())
            files = sorted(found, key=lambda one: -one[0].st_mtime)
    except OSError:  # another process prunes as well
        return
    kept_bytes = 0
    for number, (stat, path) in enumerate(files):
        kept_bytes += stat.st_size
        if number >= KEPT_FILES or kept_bytes > KEPT_BYTES:
            Path(path).unlink(missing_ok=True)
