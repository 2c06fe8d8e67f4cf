"""Files and folders that only their owner can access, with modes 0600 and 0700 regardless of the umask."""

import contextlib
import os
import stat
import threading
from pathlib import Path

from hark.disk.durable import sync_folders

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def create_private_folder(path: Path) -> None:
    """Create a folder and its missing parents durably. If the folder exists, remove other users' access to it.

    Raises:
        OSError: The folder can't be created.
    """
    if path.is_dir():
        restrict_access(path)
        return
    missing = [folder for folder in (*reversed(path.parents), path) if not folder.is_dir()]
    for folder in missing:
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    sync_folders(folder.parent for folder in missing)


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
    """Create a file with this content durably, and its folder if missing.

    Raises:
        FileExistsError: The file exists. It is not changed.
        OSError: The file can't be written.
    """
    _write_and_sync(open_private(path, os.O_WRONLY | os.O_EXCL), data)
    sync_folders([path.parent])


def replace_file(path: Path, data: bytes, *, is_durable: bool = True) -> None:
    """Replace a file's content. A crash or power loss leaves either the old or the new content.

    The new content is on disk when this returns, unless `is_durable` is False, which is meant for caches: a power
    loss may then leave an empty file. A symbolic link stays a link.

    Raises:
        OSError: The file can't be written. The old content is unchanged.
    """
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.new")
    try:
        _write_and_sync(open_private(draft, os.O_WRONLY | os.O_TRUNC), data, is_durable=is_durable)
        draft.replace(target)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    if is_durable:
        sync_folders([target.parent])


def append_log(path: Path, data: bytes) -> int:
    """Append to a log file, creating it if it is missing. Return its new size. A power loss may lose the last lines.

    Raises:
        OSError: The file can't be written.
    """
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_APPEND), "ab") as file:
        file.write(data)
        file.flush()
        return file.tell()


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


def _write_and_sync(descriptor: int, data: bytes, *, is_durable: bool = True) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        if is_durable:
            os.fsync(file.fileno())
