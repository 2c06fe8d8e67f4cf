"""The steps of all sessions, each in a file of its own: open while it runs, then whole, then undone."""

import fcntl
import os
import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from hark.disk.private_files import open_private, replace_private, sync_folder
from hark.protocol.snapshots import StepName
from hark.tools.undo.blobs import digest_of
from hark.tools.undo.manifest import Difference

OPEN = ".open"
WHOLE = ".step"
UNDONE = ".undone"


class Step(Struct, frozen=True):
    """What is known of one step. `manifests`: what was before, the first that names a path holds."""

    name: StepName
    root: bytes
    owner: str
    manifests: tuple[bytes, ...] = ()
    difference: Difference = Difference()
    notes: tuple[str, ...] = ()


class StepFiles:
    """The folder of steps. Writes are whole or not at all; any method may raise an OSError.

    This process holds a lock on a file of its own for as long as it lives: so others can tell its open steps
    from those that a crash left.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._owners = folder / "owners"
        self._lock = -1
        self.owner = f"{os.getpid()}-{secrets.token_hex(4)}"

    def begin(self, step: Step) -> Path:
        """Write a step that has just begun; return where it is."""
        self._hold_owner()
        folder = self._of(step.name.session)
        folder.mkdir(mode=0o700, exist_ok=True)
        last = max((int(path.stem) for path in folder.iterdir() if path.stem.isdigit()), default=0)
        path = folder / f"{max(time.time_ns(), last + 1):020d}{OPEN}"
        self.write(path, step)
        return path

    def write(self, path: Path, step: Step) -> None:
        """Write a step, anew if it is there."""
        replace_private(path, msgspec.msgpack.encode(step), is_durable=False)

    def finish(self, path: Path, step: Step) -> None:
        """Make an open step whole."""
        self.write(path.with_suffix(WHOLE), step)
        path.unlink(missing_ok=True)

    def mark_undone(self, path: Path) -> None:
        """Remember that a step is undone, also over a loss of power."""
        with suppress(FileNotFoundError):
            path.rename(path.with_suffix(UNDONE))
        sync_folder(path.parent)

    def read(self, path: Path) -> Step | None:
        """Return a step; None if it isn't there or can't be understood."""
        try:
            return msgspec.msgpack.decode(path.read_bytes(), type=Step)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def to_undo(self, session: str) -> list[Path]:
        """Return the steps of a session that are not undone, open ones too, newest first."""
        return _present(self._of(session))

    def left_open(self) -> list[Path]:
        """Return the open steps whose process is dead, oldest first."""
        folders = self._folder.glob("*/")
        found = (path for folder in folders for path in _present(folder) if path.suffix == OPEN)
        return sorted((path for path in found if self._is_left(path)), key=lambda path: path.name)

    def _is_left(self, path: Path) -> bool:
        step = self.read(path)
        return step is not None and step.owner != self.owner and not self._is_alive(step.owner)

    def _of(self, session: str) -> Path:
        return self._folder / digest_of(session.encode("utf-8", "surrogatepass")).hex()[:32]

    def _hold_owner(self) -> None:
        if self._lock >= 0 and (self._owners / self.owner).exists():
            return
        self.close()
        # A lock of the process, not of the open file: a forked child doesn't share it.
        self._lock = open_private(self._owners / self.owner, os.O_RDWR)
        fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _is_alive(self, owner: str) -> bool:
        path = self._owners / owner
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def forget_owners(self) -> None:
        """Remove what dead processes left."""
        with suppress(FileNotFoundError):
            for path in self._owners.iterdir():
                if path.name != self.owner and not self._is_alive(path.name):
                    path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the owner's file: what is still open then is as if left by a crash."""
        if self._lock >= 0:
            with suppress(OSError):
                (self._owners / self.owner).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = -1


def _present(folder: Path) -> list[Path]:
    """Return one path for each step that is not undone, newest first: whole where it is, else open."""
    try:
        paths = list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    best: dict[str, Path] = {}
    for suffix in (OPEN, WHOLE, UNDONE):
        best.update((path.stem, path) for path in paths if path.suffix == suffix)
    return sorted((path for path in best.values() if path.suffix != UNDONE), key=lambda path: path.name, reverse=True)


@contextmanager
def locked(folder: Path, *, is_shared: bool) -> Generator[None]:
    """Hold the store's lock among processes: shared to add to it, alone to remove from it or to undo."""
    file = open_private(folder / "lock", os.O_RDWR)
    try:
        fcntl.lockf(file, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)  # which lets go of the lock
