"""Replaces whole files atomically and durably. Several changes are applied together: either all or none."""

import contextlib
import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from hark.disk.durable import sync_folders
from hark.protocol.messages import Effect
from hark.protocol.tool import ToolError
from hark.tools.files.paths import display_path, read_content

MAX_BYTES = 8 * 1024 * 1024


class FileChange(Struct):
    """A change to a file from `old` to `new`; None means no file. If `is_executable` is None, the mode is preserved.

    A new file gets the owner and mode of the file `moved_from`, if there is one.
    """

    path: Path
    old: bytes | None
    new: bytes | None
    is_executable: bool | None = None
    moved_from: Path | None = None


def read_target(path: Path, workspace: Path) -> FileChange:
    """Return the file that a write to `path` would change, as a change that keeps the content.

    Symbolic links are resolved. The file need not exist.

    Raises:
        ToolError: The path can't be resolved, or the file can't be read or written, or is larger than `MAX_BYTES`.
    """
    name = display_path(path, workspace)
    try:
        target = path.resolve()
        exists = target.exists()
    except OSError as error:
        raise ToolError(f"{name} can't be resolved: {error.strerror}.") from error
    except RuntimeError as error:
        raise ToolError(f"{name} can't be resolved: its symbolic links form a loop.") from error
    if not exists:
        return FileChange(target, None, None)
    content = read_content(target, workspace, MAX_BYTES, "can be changed here. Use a shell command, such as sed.")
    if not os.access(target, os.W_OK):
        raise ToolError(f"{name} is read-only. To change it, make it writable first.")
    return FileChange(target, content, content)


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
        self._drafts: dict[Path, Path] = {}  # the file with the new content of each target
        self._applied: list[tuple[FileChange, os.stat_result | None]] = []
        self._new_folders: list[Path] = []

    def prepare(self, change: FileChange) -> None:
        """Write the new content to a draft next to the target, and wait until it is on disk."""
        if change.new is not None:
            self._make_folders(change.path.parent)
            source = change.path if change.old is not None else change.moved_from
            old = source.stat() if source else None
            if change.old is None or (old is not None and old.st_nlink == 1):
                self._write_draft(change.path, change.new, old, change.is_executable)

    def apply(self, change: FileChange) -> None:
        """Replace or remove the target."""
        before = change.path.stat() if change.old is not None else None
        if change.new is None:
            change.path.unlink()
        elif change.path in self._drafts:
            self._drafts[change.path].replace(change.path)
        else:
            _write_in_place(change.path, change.new, None, change.is_executable)
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
                elif before is not None and before.st_nlink > 1 and change.path.exists():
                    _write_in_place(change.path, change.old, before)
                else:
                    self._write_draft(change.path, change.old, before)
                    self._drafts[change.path].replace(change.path)
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
            _set_owner_and_mode(descriptor, old, is_executable)
            file.write(content)
            file.flush()
            os.fsync(descriptor)


def _write_in_place(
    path: Path, content: bytes, status: os.stat_result | None, is_executable: bool | None = None
) -> None:
    """Overwrite a file that has other hard links, which a rename would leave with the old content."""
    with path.open("r+b", buffering=0) as file:
        old = file.read()
        _set_owner_and_mode(file.fileno(), status, is_executable)
        try:
            _overwrite(file.fileno(), content)
        except OSError:
            _overwrite(file.fileno(), old)
            raise


def _overwrite(descriptor: int, content: bytes) -> None:
    written = 0
    while written < len(content):
        written += os.pwrite(descriptor, content[written:], written)
    os.ftruncate(descriptor, len(content))
    os.fsync(descriptor)


def _set_owner_and_mode(descriptor: int, wanted: os.stat_result | None, is_executable: bool | None) -> None:
    """Set the wanted owner and mode. None keeps the owner, or the executable mode, as it is."""
    status = os.fstat(descriptor)
    wanted = wanted or status
    if (status.st_uid, status.st_gid) != (wanted.st_uid, wanted.st_gid):
        with contextlib.suppress(PermissionError):  # only root may change a file's owner
            os.fchown(descriptor, wanted.st_uid, wanted.st_gid)
    mode = stat.S_IMODE(wanted.st_mode)
    if is_executable is not None:  # every user who may read the file may run it
        mode = mode | (mode & 0o444) >> 2 if is_executable else mode & ~0o111
    if mode != stat.S_IMODE(os.fstat(descriptor).st_mode):
        os.fchmod(descriptor, mode)
