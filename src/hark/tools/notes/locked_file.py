"""A small file that is replaced whole or not at all, by one process at a time."""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from hark.disk.private_files import sync_folder

LOCK_SECONDS = 5.0
_LOOK_SECONDS = 0.01


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Have this file's lock; it ends with the process, however that ends. Blocks the caller.

    Raises:
        TimeoutError: Another process kept it for too long.
        OSError: The lock can't be made.
    """
    make_folder(path.parent)
    deadline = time.monotonic() + LOCK_SECONDS
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"another process has had {path} locked for {LOCK_SECONDS:g} seconds") from None
                time.sleep(_LOOK_SECONDS)
        yield
    finally:
        os.close(lock)


def replace_file(path: Path, content: bytes) -> None:
    """Have a file say this, durably; a crash at any point leaves all of the old or all of the new. Blocks the caller.

    What an earlier call that was killed left beside the file is removed, so hold a lock. A link stays a link.

    Raises:
        OSError: It could not be done.
    """
    place = Path(os.path.realpath(path))
    make_folder(place.parent)
    for left in place.parent.glob(f".{place.name}.*.new"):
        with suppress(FileNotFoundError):
            left.unlink()
    new = place.with_name(f".{place.name}.{os.getpid()}.new")
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as writer:
        writer.write(content)
        writer.flush()
        os.fsync(writer.fileno())
    new.replace(place)
    sync_folder(place.parent)


def make_folder(folder: Path) -> None:
    """Make a folder for its owner alone, and those above it, durably."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
        sync_folder(one.parent)
