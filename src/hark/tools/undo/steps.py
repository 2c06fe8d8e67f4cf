"""The step files of all sessions. A file's suffix shows whether its step is open, finished or undone."""

import fcntl
import os
import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from hark.disk.durable import sync_folders
from hark.disk.private_files import create_private_folder, open_private, replace_file
from hark.disk.stored_json import set_aside
from hark.protocol.snapshots import StepId
from hark.tools.undo.blobs import digest_of
from hark.tools.undo.manifest import Difference

OPEN = ".open"
FINISHED = ".step"
UNDONE = ".undone"


class Step(Struct, frozen=True):
    """The record of one step. `manifests` are digests of earlier states; for each path, the first digest applies."""

    name: StepId
    root: bytes
    owner: str
    manifests: tuple[bytes, ...] = ()
    difference: Difference = Difference()
    notes: tuple[str, ...] = ()


class StepFiles:
    """The folder of step files. Writes are atomic and durable. Any method may raise an OSError.

    This process holds a lock on its own owner file until it exits, so that other processes can distinguish its open
    steps from those that a crash left.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._owners = folder / "owners"
        self._lock = -1
        self.owner = f"{os.getpid()}-{secrets.token_hex(4)}"

    def begin(self, step: Step) -> Path:
        """Write the file for a step that has just begun, and return its path."""
        self._lock_owner_file()
        folder = self._session_folder(step.name.session)
        create_private_folder(folder)
        last = max((int(path.stem) for path in folder.iterdir() if path.stem.isdigit()), default=0)
        path = folder / f"{max(time.time_ns(), last + 1):020d}{OPEN}"
        self.write(path, step)
        return path

    def write(self, path: Path, step: Step) -> None:
        """Write a step to a file and replace the file if it exists."""
        replace_file(path, msgspec.msgpack.encode(step))

    def finish(self, path: Path, step: Step) -> None:
        """Replace an open step with the finished one."""
        self.write(path.with_suffix(FINISHED), step)
        self.remove(path)

    def remove(self, path: Path) -> None:
        """Remove a step durably."""
        path.unlink(missing_ok=True)
        sync_folders([path.parent])

    def mark_undone(self, path: Path) -> None:
        """Record that a step is undone. The record survives a power loss."""
        with suppress(FileNotFoundError):
            path.rename(path.with_suffix(UNDONE))
        sync_folders([path.parent])

    def read(self, path: Path) -> Step | None:
        """Return a step, or None if it is missing or damaged."""
        try:
            return msgspec.msgpack.decode(path.read_bytes(), type=Step)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def set_aside_damaged(self, path: Path) -> bool:
        """Set a step aside that `read` could not return. Return False if it no longer exists."""
        try:
            set_aside(path, "it can't be decoded")
        except FileNotFoundError:
            return False
        return True

    def undoable_steps(self, session: str) -> list[Path]:
        """Return a session's steps that are not undone, including open ones, newest first."""
        return _steps_not_undone(self._session_folder(session))

    def abandoned_steps(self) -> list[Path]:
        """Return the open steps whose process is dead, oldest first."""
        folders = self._folder.glob("*/")
        found = (path for folder in folders for path in _steps_not_undone(folder) if path.suffix == OPEN)
        return sorted((path for path in found if self._is_abandoned(path)), key=lambda path: path.name)

    def _is_abandoned(self, path: Path) -> bool:
        step = self.read(path)
        return step is not None and step.owner != self.owner and not self._is_alive(step.owner)

    def _session_folder(self, session: str) -> Path:
        return self._folder / digest_of(session.encode("utf-8", "surrogatepass")).hex()[:32]

    def _lock_owner_file(self) -> None:
        if self._lock >= 0 and (self._owners / self.owner).exists():
            return
        self.close()
        # A lock of the process, not of the open file, so that a forked child doesn't share it.
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

    def remove_dead_owners(self) -> None:
        """Remove the owner files of dead processes."""
        with suppress(FileNotFoundError):
            for path in self._owners.iterdir():
                if path.name != self.owner and not self._is_alive(path.name):
                    path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the owner file. Steps that are still open are then treated as left by a crash."""
        if self._lock >= 0:
            with suppress(OSError):
                (self._owners / self.owner).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = -1


def _steps_not_undone(folder: Path) -> list[Path]:
    """Return the path of each step that is not undone, newest first. Prefers the finished file to the open one."""
    try:
        paths = list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    best: dict[str, Path] = {}
    for suffix in (OPEN, FINISHED, UNDONE):
        best.update((path.stem, path) for path in paths if path.suffix == suffix)
    return sorted((path for path in best.values() if path.suffix != UNDONE), key=lambda path: path.name, reverse=True)


@contextmanager
def lock_store(folder: Path, *, is_shared: bool) -> Generator[None]:
    """Hold the store's inter-process lock: shared to add to the store, exclusive to remove from it or to undo."""
    file = open_private(folder / "lock", os.O_RDWR)
    try:
        fcntl.lockf(file, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)  # closing releases the lock
