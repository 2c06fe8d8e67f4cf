"""A lock between processes, held on a file."""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from hark.disk.private_files import open_private

LOCK_SECONDS = 5.0
_RETRY_SECONDS = 0.01


@contextmanager
def lock_file(path: Path) -> Generator[None]:
    """Hold the lock on this file. The lock is released when the process ends, even by a crash. Blocks the caller.

    Raises:
        TimeoutError: Another process held the lock for too long.
        OSError: The lock file can't be created.
    """
    deadline = time.monotonic() + LOCK_SECONDS
    lock = open_private(path, os.O_RDWR)
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
