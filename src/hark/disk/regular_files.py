"""Opens regular files of others: never waits for the other end of a pipe."""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def open_regular(path: bytes | Path, *, follows_link: bool = False) -> Generator[int]:
    """Open a file for reading and yield its descriptor; it is closed at the end.

    Raises:
        OSError: It can't be read, or is not a regular file. A link is none, unless it may be followed.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follows_link else os.O_NOFOLLOW))
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is not a file", path)
        yield file
    finally:
        os.close(file)


def read_start(path: bytes | Path, size: int, *, follows_link: bool = False) -> bytes:
    """Return the first bytes of a regular file.

    Raises:
        OSError: As `open_regular` does.
    """
    with open_regular(path, follows_link=follows_link) as file:
        return os.read(file, size)
