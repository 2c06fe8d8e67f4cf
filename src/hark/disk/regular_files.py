"""Opens regular files from untrusted sources. Never blocks on a named pipe."""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def open_regular(path: bytes | Path, *, follow_symlink: bool = False) -> Generator[int]:
    """Open a file for reading and yield its descriptor, which is closed when the context exits.

    Raises:
        OSError: The file isn't a regular file or can't be read, or is a symbolic link and `follow_symlink` is False.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow_symlink else os.O_NOFOLLOW))
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        yield file
    finally:
        os.close(file)


def read_start(path: bytes | Path, max_bytes: int, *, follow_symlink: bool = False) -> bytes:
    """Return up to `max_bytes` from the start of a regular file.

    Raises:
        OSError: Same as `open_regular`.
    """
    with open_regular(path, follow_symlink=follow_symlink) as file:
        return os.read(file, max_bytes)
