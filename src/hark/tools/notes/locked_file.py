"""Locks a small file against other processes, and replaces it atomically."""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from hark.disk.private_files import sync_folder

LOCK_SECONDS = 5.0
_RETRY_SECONDS = 0.01


@contextmanager
def lock_file(path: Path) -> Generator[None]:
    """Hold the lock on this file. The lock is released when the process ends, even by a crash. Blocks the caller.

    Raises:
        TimeoutError: Another process held the lock for too long.
        OSError: The lock file can't be created.
    """
    make_private_folder(path.parent)
    deadline = time.monotonic() + LOCK_SECONDS
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"another process has held {path} for {LOCK_SECONDS:g} seconds") from None
                time.sleep(_RETRY_SECONDS)
        yield
    finally:
        os.close(lock)


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file's content durably. A crash leaves either the old or the new content. Blocks the caller.

    Also removes temporary files of killed calls, so the caller must hold a lock. A symbolic link stays a link.

    Raises:
        OSError: The file could not be replaced.
    """
    target = Path(os.path.realpath(path))
    make_private_folder(target.parent)
    for leftover in target.parent.glob(f".{target.name}.*.new"):
        with suppress(FileNotFoundError):
            leftover.unlink()
    new = target.with_name(f".{target.name}.{os.getpid()}.new")
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as writer:
        writer.write(content)
        writer.flush()
        os.fsync(writer.fileno())
    new.replace(target)
    sync_folder(target.parent)


def make_private_folder(folder: Path) -> None:
    """Create a folder that only its owner can access, and its missing parents, durably."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
        sync_folder(one.parent)
