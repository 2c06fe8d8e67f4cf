"""Files and folders that only their owner can access: 0600 and 0700, whatever the umask."""

import contextlib
import os
import stat
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def private_folder(path: Path) -> None:
    """Create a folder and its missing parents; take the access of others away if it exists.

    Raises:
        OSError: It can't be created.
    """
    if path.is_dir():
        tighten(path)
        return
    for folder in (*reversed(path.parents), path):
        if not folder.is_dir():
            folder.mkdir(mode=FOLDER_MODE, exist_ok=True)


def open_private(path: Path, flags: int) -> int:
    """Open a file, created with its folder if missing, and return its descriptor. `flags` are those of `os.open`.

    Raises:
        OSError: It can't be opened.
    """
    private_folder(path.parent)
    descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    tighten(descriptor)
    return descriptor


def create_private(path: Path, data: bytes = b"") -> None:
    """Create a file with this content, and its folder if missing.

    Raises:
        FileExistsError: The file exists. It is not changed.
        OSError: It can't be written.
    """
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_EXCL), "wb") as file:
        file.write(data)


def append_private(path: Path, data: bytes, *, is_durable: bool = True) -> int:
    """Append to a file, created if missing. Return its new size.

    Raises:
        OSError: It can't be written.
    """
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_APPEND), "ab") as file:
        file.write(data)
        file.flush()
        if is_durable:
            os.fsync(file.fileno())
        return file.tell()


def replace_private(path: Path, data: bytes, *, is_durable: bool = True) -> None:
    """Replace a file's content, all of it or none.

    Raises:
        OSError: It can't be written. The old content is still there.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with os.fdopen(open_private(draft, os.O_WRONLY | os.O_TRUNC), "wb") as file:
            file.write(data)
            file.flush()
            if is_durable:
                os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def tighten(path: Path | int) -> None:
    """Take the access of others away from a file, a folder or a descriptor of ours. Shared folders stay as they are.

    Raises:
        FileNotFoundError: There is no such file.
    """
    status = os.stat(path)  # noqa: PTH116 - a descriptor, too
    is_shared = status.st_uid != os.getuid() or status.st_mode & stat.S_ISVTX
    if status.st_mode & 0o077 and not is_shared:
        with contextlib.suppress(OSError):  # some file systems have no modes
            os.chmod(path, stat.S_IMODE(status.st_mode) & ~0o077)  # noqa: PTH101 - a descriptor, too
