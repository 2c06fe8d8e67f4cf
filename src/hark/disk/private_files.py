"""Files and folders that only their owner can access, with modes 0600 and 0700 regardless of the umask."""

import contextlib
import os
import stat
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def create_private_folder(path: Path) -> None:
    """Create a folder and its missing parents. If the folder exists, remove other users' access to it.

    Raises:
        OSError: The folder can't be created.
    """
    if path.is_dir():
        restrict_access(path)
        return
    for folder in (*reversed(path.parents), path):
        if not folder.is_dir():
            folder.mkdir(mode=FOLDER_MODE, exist_ok=True)


def open_private(path: Path, flags: int) -> int:
    """Open a file and return its descriptor. Creates the file and its folder if missing. See `os.open` for `flags`.

    Raises:
        OSError: The file can't be opened.
    """
    create_private_folder(path.parent)
    descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    restrict_access(descriptor)
    return descriptor


def create_private(path: Path, data: bytes = b"") -> None:
    """Create a file with this content, and its folder if missing.

    Raises:
        FileExistsError: The file exists. It is not changed.
        OSError: The file can't be written.
    """
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_EXCL), "wb") as file:
        file.write(data)


def append_private(path: Path, data: bytes, *, is_durable: bool = True) -> int:
    """Append to a file, creating it if it is missing. Return its new size.

    Raises:
        OSError: The file can't be written.
    """
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_APPEND), "ab") as file:
        file.write(data)
        file.flush()
        if is_durable:
            os.fsync(file.fileno())
        return file.tell()


def replace_private(path: Path, data: bytes, *, is_durable: bool = True) -> None:
    """Replace a file's content atomically.

    Raises:
        OSError: The file can't be written. The old content is unchanged.
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
    """Wait until the directory entries of a folder are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def restrict_access(path: Path | int) -> None:
    """Remove other users' access to a file, folder or descriptor that we own. Shared folders are not changed.

    Raises:
        FileNotFoundError: The file doesn't exist.
    """
    status = os.stat(path)  # noqa: PTH116 - accepts a descriptor
    is_shared = status.st_uid != os.getuid() or status.st_mode & stat.S_ISVTX
    if status.st_mode & 0o077 and not is_shared:
        with contextlib.suppress(OSError):  # some file systems have no modes
            os.chmod(path, stat.S_IMODE(status.st_mode) & ~0o077)  # noqa: PTH101 - accepts a descriptor
