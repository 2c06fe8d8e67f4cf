"""Waits until changes are on disk, so that they survive a power loss."""
# Paths may be bytes here, because file names may not be valid text.

import ctypes
import errno
import os
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

AnyPath = bytes | str | Path

MAX_SINGLE_SYNCS = 32  # beyond this, one sync of the whole file system is faster
# Some network file systems can't sync a folder, and a folder without read permission can't be opened.
_UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM)


def sync_files(paths: Collection[AnyPath]) -> None:
    """Wait until the contents of these files are on disk. All of them are on one file system.

    Raises:
        OSError: A file can't be synced.
    """
    if len(paths) > MAX_SINGLE_SYNCS:
        _sync_file_system(next(iter(paths)))
        return
    for path in paths:
        _sync(path)


def sync_folders(paths: Iterable[AnyPath]) -> None:
    """Wait until the entries of these folders are on disk: their created, renamed and removed files.

    Raises:
        OSError: A folder can't be synced.
    """
    folders = {os.fsencode(path) for path in paths}
    if len(folders) > MAX_SINGLE_SYNCS:
        _sync_file_system(next(iter(folders)))
        return
    for folder in folders:
        try:
            _sync(folder)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise


def _sync(path: AnyPath) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_file_system(path: AnyPath) -> None:
    """Sync the file system that contains a path."""
    if sys.platform != "linux":
        os.sync()
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
    finally:
        os.close(descriptor)
