"""Replaces whole files atomically and durably. Several changes are applied together: either all or none."""

import contextlib
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from hark.disk.durable import sync_folders
from hark.protocol.messages import Effect
from hark.protocol.tool import ToolError
from hark.tools.files.paths import display_path, open_file, read_content

MAX_BYTES = 8 * 1024 * 1024


class FileChange(Struct):
    """A change to a file from `old` to `new`; None means no file. If `is_executable` is None, the mode is preserved."""

    path: Path
    old: bytes | None
    new: bytes | None
    is_executable: bool | None = None


def resolve_target(path: Path, workspace: Path) -> Path:
    """Return the file that a write to `path` would change, with symbolic links resolved.

    Raises:
        ToolError: The path can't be resolved, or exists and is not a writable regular file.
    """
    try:
        target = path.resolve()
        exists = target.exists()
    except (OSError, RuntimeError) as error:
        raise ToolError(f"{display_path(path, workspace)} can't be resolved: {_describe_error(error)}.") from error
    if exists:
        with open_file(target, workspace):
            pass
        if not os.access(target, os.W_OK):
            raise ToolError(f"{display_path(path, workspace)} is read-only. To change it, make it writable first.")
    return target


def read_old_content(path: Path, workspace: Path) -> bytes:
    """Return the content of a file before a change.

    Raises:
        ToolError: The file is missing, not regular, not readable, or larger than `MAX_BYTES`.
    """
    limit = "can be changed here. Use a shell command, such as sed."
    return read_content(path, workspace, MAX_BYTES, limit)


def apply_changes(changes: Sequence[FileChange], workspace: Path) -> None:
    """Apply all changes. They are on disk when this returns. Blocks the caller.

    Raises:
        ToolError: A change failed, and all files were restored. If a file could not be restored, the effect is
            unknown.
    """
    transaction = _Transaction()
    path = Path()
    try:
        for change in changes:
            path = change.path
            transaction.prepare(change)
        for change in changes:
            path = change.path
            transaction.apply(change)
        transaction.sync()
    except OSError as error:
        not_restored = transaction.roll_back()
        why = f"{display_path(path, workspace)} can't be written: {error.strerror}."
        if not_restored:
            names = ", ".join(display_path(path, workspace) for path in not_restored)
            why = f"{why} Earlier changes could not be undone in: {names}."
            raise ToolError(why, Effect.UNKNOWN) from error
        raise ToolError(f"{why} Nothing was changed.") from error


class _Transaction:
    """File changes that can be undone. Contents are on disk before they replace a file.

    So a reader, a crash or a power loss never sees a half-written file.
    """

    def __init__(self) -> None:
        self._drafts: dict[Path, Path] = {}  # the new content of each target, until it replaces the target
        self._applied: list[tuple[FileChange, os.stat_result | None]] = []
        self._new_folders: list[Path] = []

    def prepare(self, change: FileChange) -> None:
        """Write the new content to a draft next to the target, and wait until it is on disk."""
        if change.new is not None:
            self._make_folders(change.path.parent)
            old = change.path.stat() if change.old is not None else None
            self._write_draft(change.path, change.new, old, change.is_executable)

    def apply(self, change: FileChange) -> None:
        """Replace or remove the target."""
        before = change.path.stat() if change.old is not None else None
        if change.new is None:
            change.path.unlink()
        else:
            self._drafts[change.path].replace(change.path)
            del self._drafts[change.path]
        self._applied.append((change, before))

    def sync(self) -> None:
        """Wait until the directory entries are on disk."""
        sync_folders(path.parent for path in (*self._new_folders, *(change.path for change, _ in self._applied)))

    def roll_back(self) -> list[Path]:
        """Undo all changes. Return the files that could not be restored."""
        not_restored: list[Path] = []
        for change, before in reversed(self._applied):
            try:
                if change.old is None:
                    change.path.unlink()
                else:
                    self._write_draft(change.path, change.old, before)
                    self._drafts.pop(change.path).replace(change.path)
            except OSError:
                not_restored.append(change.path)
        for draft in self._drafts.values():
            draft.unlink(missing_ok=True)
        for folder in reversed(self._new_folders):
            with contextlib.suppress(OSError):  # another process put a file into it
                folder.rmdir()
        return not_restored

    def _make_folders(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make_folders(folder.parent)
        folder.mkdir()
        self._new_folders.append(folder)

    def _write_draft(
        self, path: Path, content: bytes, old: os.stat_result | None, is_executable: bool | None = None
    ) -> None:
        draft = self._drafts[path] = path.parent / f".{secrets.token_hex(8)}.hark"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            if old is not None:
                _copy_owner_and_mode(descriptor, old)
            if is_executable is not None:
                _make_executable(descriptor, is_executable)
            file.write(content)
            file.flush()
            os.fsync(descriptor)


def _copy_owner_and_mode(descriptor: int, old_status: os.stat_result) -> None:
    status = os.fstat(descriptor)
    if (status.st_uid, status.st_gid) != (old_status.st_uid, old_status.st_gid):
        with contextlib.suppress(PermissionError):  # only root may change a file's owner
            os.fchown(descriptor, old_status.st_uid, old_status.st_gid)
    os.fchmod(descriptor, old_status.st_mode & 0o7777)


def _make_executable(descriptor: int, is_executable: bool) -> None:
    mode = os.fstat(descriptor).st_mode & 0o7777
    # Every user who may read the file may run it.
    os.fchmod(descriptor, mode | (mode & 0o444) >> 2 if is_executable else mode & ~0o111)


def _describe_error(error: OSError | RuntimeError) -> str:
    return error.strerror or "unknown" if isinstance(error, OSError) else "its symbolic links form a loop"
