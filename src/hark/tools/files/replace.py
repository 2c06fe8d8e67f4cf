"""Changes of whole files: each is the old or the new one at any instant, and several are made all or not at all."""

import contextlib
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from hark.protocol.messages import Effect
from hark.protocol.tool import ToolError
from hark.tools.files.paths import content_of, open_file, shown

LARGEST_BYTES = 8 * 1024 * 1024


class FileChange(Struct):
    """What a file is to become; `old` is what it was, None for no file. `is_executable`: None leaves that as it is."""

    path: Path
    old: bytes | None
    new: bytes | None
    is_executable: bool | None = None


def target_of(path: Path, workspace: Path) -> Path:
    """Return the file that a write to the path changes: where its symbolic links lead.

    Raises:
        ToolError: It is there, and not a file that may be written.
    """
    try:
        target = path.resolve()
        is_there = target.exists()
    except (OSError, RuntimeError) as error:
        raise ToolError(f"{shown(path, workspace)} leads nowhere: {_reason(error)}.") from error
    if is_there:
        with open_file(target, workspace):
            pass
        if not os.access(target, os.W_OK):
            raise ToolError(f"{shown(path, workspace)} is read-only. Make it writable first, if it should be changed.")
    return target


def old_content(path: Path, workspace: Path) -> bytes:
    """Return all of a file's bytes.

    Raises:
        ToolError: It is missing, not a regular file, not ours to read, or too big to be changed here.
    """
    limit = "can be changed here. Use a program through the shell, such as sed."
    return content_of(path, workspace, LARGEST_BYTES, limit)


def make(changes: Sequence[FileChange], workspace: Path) -> None:
    """Make all changes, without ever awaiting: no cut comes between them.

    Raises:
        ToolError: One failed, and all is as it was.
            Its effect is unknown if not all could be put back.
    """
    done = _Done()
    for change in changes:
        try:
            done.make(change)
        except OSError as error:
            left = done.put_back()
            why = f"{shown(change.path, workspace)} can't be written: {error.strerror}."
            if left:
                names = ", ".join(shown(path, workspace) for path in left)
                why = f"{why} What was changed before could not be put back in: {names}."
                raise ToolError(why, Effect.UNKNOWN) from error
            raise ToolError(f"{why} Nothing was changed.") from error


class _Done:
    """What was done so far, so that it can be undone."""

    def __init__(self) -> None:
        self._changes: list[tuple[FileChange, os.stat_result | None]] = []
        self._folders: list[Path] = []

    def make(self, change: FileChange) -> None:
        before = change.path.stat() if change.old is not None else None
        if change.new is None:
            change.path.unlink()
        else:
            self._make_folders(change.path.parent)
            _put(change.path, change.new, before, change.is_executable)
        self._changes.append((change, before))

    def put_back(self) -> list[Path]:
        """Return the files that could not be put back."""
        left: list[Path] = []
        for change, before in reversed(self._changes):
            try:
                if change.old is None:
                    change.path.unlink()
                else:
                    _put(change.path, change.old, before)
            except OSError:
                left.append(change.path)
        for folder in reversed(self._folders):
            with contextlib.suppress(OSError):  # somebody put something into it
                folder.rmdir()
        return left

    def _make_folders(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make_folders(folder.parent)
        folder.mkdir()
        self._folders.append(folder)


def _put(path: Path, content: bytes, like: os.stat_result | None, is_executable: bool | None = None) -> None:
    """Write beside the file and rename over it, so that nobody ever sees half of it."""
    beside = path.parent / f".{secrets.token_hex(8)}.hark"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if like is not None:
                _take_after(descriptor, like)
            if is_executable is not None:
                _make_executable(descriptor, is_executable)
            file.write(content)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _take_after(descriptor: int, like: os.stat_result) -> None:
    status = os.fstat(descriptor)
    if (status.st_uid, status.st_gid) != (like.st_uid, like.st_gid):
        with contextlib.suppress(PermissionError):  # only root may give a file to another
            os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, like.st_mode & 0o7777)


def _make_executable(descriptor: int, is_executable: bool) -> None:
    mode = os.fstat(descriptor).st_mode & 0o7777
    # Whoever may read it may run it.
    os.fchmod(descriptor, mode | (mode & 0o444) >> 2 if is_executable else mode & ~0o111)


def _reason(error: OSError | RuntimeError) -> str:
    return error.strerror or "unknown" if isinstance(error, OSError) else "its symbolic links go in a circle"
