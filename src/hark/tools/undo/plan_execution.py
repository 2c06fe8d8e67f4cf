"""Executes an undo plan. Each file is replaced by one rename. A plan that fails halfway can be rolled back."""
# File names are bytes here, because they may not be valid text.
# ruff: noqa: PTH101, PTH103, PTH104, PTH105, PTH106, PTH108, PTH112, PTH114, PTH118, PTH120, PTH211

import errno
import os
import shutil
import stat
from contextlib import suppress

from hark.disk.durable import sync_files, sync_folders
from hark.tools.undo.blobs import BlobStore, digest_of
from hark.tools.undo.manifest import EntryChange, EntryKind, ManifestEntry, SkipReason, format_path, has_same_content
from hark.tools.undo.plan import DiskState, UndoPlan

NOT_EMPTY_ERRORS = (errno.ENOTEMPTY, errno.EEXIST)


class PlanExecution:
    """Executes one plan. Skips changes that were already made, so that the plan can be resumed after a crash."""

    def __init__(self, plan: UndoPlan, blobs: BlobStore) -> None:
        self._plan = plan
        self._blobs = blobs
        # Hard links: names of one file become one file again. The values are temporary paths.
        self._restored_files: dict[tuple[int, int, int, bytes], bytes] = {}
        self.remaining_folders: list[bytes] = []  # folders that the steps created and that contain other files by now

    def run(self) -> None:
        """Execute the whole plan durably. Folders are created before their contents and removed after them.

        Raises:
            OSError: The plan took effect only in part. Run its inverse, or run it again.
        """
        self._make_folders_writable()
        self._remove_files()
        self._make_folders()
        self._move_back()
        self._remove_folders()
        self._restore_entries()
        self._restore_folder_modes()
        self._sync_folders()

    def _make_folders_writable(self) -> None:
        present = [c.path for c in self._plan.changes if c.after is not None and c.after.kind is EntryKind.FOLDER]
        disk = DiskState()
        for path in sorted({*self._plan.modes, *self._wanted_folders(), *present}, key=len):
            if disk.is_folder(path):
                mode = stat.S_IMODE(os.lstat(path).st_mode)
                if mode & 0o700 != 0o700:
                    os.chmod(path, mode | 0o700)

    def _remove_files(self) -> None:
        # From the top: a link that replaced a folder must be removed before paths behind it are resolved.
        for change in sorted(self._plan.changes, key=lambda change: len(change.path)):
            if (change.before is None or change.before.kind is EntryKind.FOLDER) and _is_non_folder(change.path):
                os.unlink(change.path)

    def _make_folders(self) -> None:
        for path, wanted in sorted(self._wanted_folders().items(), key=lambda one: len(one[0])):
            if not os.path.isdir(path):
                os.makedirs(path)
                _restore_owner(path, wanted)
                os.chmod(path, wanted.mode | 0o700)

    def _move_back(self) -> None:
        for move in self._plan.moves:
            if os.path.lexists(move.source) and not os.path.lexists(move.target):
                os.makedirs(os.path.dirname(move.target), exist_ok=True)
                os.rename(move.source, move.target)

    def _remove_folders(self) -> None:
        """Remove the folders that the step created, deepest first. Caches are removed with their contents."""
        created = [c for c in self._plan.changes if c.before is None or c.before.kind is not EntryKind.FOLDER]
        for change in sorted(created, key=lambda change: len(change.path), reverse=True):
            if change.after is None or not os.path.isdir(change.path) or os.path.islink(change.path):
                continue
            if change.after.kind is EntryKind.SKIPPED:
                if change.before is None and change.after.why_not == SkipReason.CACHE:
                    shutil.rmtree(change.path)
                continue
            try:
                os.rmdir(change.path)
            except OSError as error:
                if error.errno not in NOT_EMPTY_ERRORS:
                    raise
                self.remaining_folders.append(change.path)

    def _restore_entries(self) -> None:
        """Create all entries under temporary names, and rename them when their contents are on disk."""
        created: dict[bytes, bytes] = {}  # the temporary path of each restored path
        try:
            for change in self._plan.changes:
                if (wanted := self._entry_to_create(change)) is not None:
                    created[change.path] = temporary_path(self._plan, change.path)
                    self._create_entry(created[change.path], wanted)
            sync_files([path for path in created.values() if stat.S_ISREG(os.lstat(path).st_mode)])
            for path, temporary in created.items():
                os.replace(temporary, path)
        except OSError:
            for temporary in created.values():
                with suppress(OSError):
                    os.unlink(temporary)
            raise

    def _entry_to_create(self, change: EntryChange) -> ManifestEntry | None:
        """Return the entry to create, or None if there is none. A change of the mode alone is made here."""
        wanted = change.before
        if wanted is None or wanted.kind in (EntryKind.FOLDER, EntryKind.OTHER, EntryKind.SKIPPED):
            return None
        is_same_file = change.after is not None and change.after.kind is wanted.kind is EntryKind.FILE
        if is_same_file and change.after is not None and has_same_content(wanted, change.after):
            os.chmod(change.path, wanted.mode)
            return None
        # Without content only in a rollback: the removed file was too big to store, and stays removed.
        return wanted if wanted.is_restorable else None

    def _create_entry(self, path: bytes, wanted: ManifestEntry) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with suppress(FileNotFoundError):
            os.unlink(path)
        linked_path = self._restored_files.setdefault(_file_identity(wanted), path)
        if linked_path != path and wanted.kind is EntryKind.FILE:
            os.link(linked_path, path)
            return
        if wanted.kind is EntryKind.LINK:
            os.symlink(wanted.digest, path)
            _restore_owner(path, wanted)
            return
        if wanted.kind is EntryKind.PIPE:
            os.mkfifo(path, 0o600)
        else:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                self._blobs.copy_to(wanted.digest, file)
            finally:
                os.close(file)
        _restore_owner(path, wanted)
        os.chmod(path, wanted.mode)

    def _restore_folder_modes(self) -> None:
        modes = {**self._plan.modes, **{path: wanted.mode for path, wanted in self._wanted_folders().items()}}
        for path in sorted(modes, key=len, reverse=True):
            with suppress(FileNotFoundError):
                if stat.S_IMODE(os.lstat(path).st_mode) != modes[path]:
                    os.chmod(path, modes[path])

    def _sync_folders(self) -> None:
        paths = {change.path for change in self._plan.changes}
        paths |= {path for move in self._plan.moves for path in (move.source, move.target)}
        sync_folders(folder for folder in {os.path.dirname(path) for path in paths} if os.path.isdir(folder))

    def _wanted_folders(self) -> dict[bytes, ManifestEntry]:
        changes = self._plan.changes
        return {c.path: c.before for c in changes if c.before is not None and c.before.kind is EntryKind.FOLDER}


def remaining_plan(plan: UndoPlan) -> tuple[UndoPlan, list[str]]:
    """Return the rest of an interrupted plan, and a line for each path skipped because it has changed since.

    Raises:
        OSError: A file can't be read.
    """
    for change in plan.changes:
        with suppress(OSError):  # usually there is none
            os.unlink(temporary_path(plan, change.path))
    disk = DiskState()
    sources = {move.source for move in plan.moves}
    remaining: list[EntryChange] = []
    changed_since: list[str] = []
    for change in plan.changes:
        is_moved = change.path in sources and not disk.exists(change.path)
        if is_moved or disk.is_as_expected(change) or _is_intermediate(change, disk):
            remaining.append(change)
        else:
            changed_since.append(f"{format_path(change.path, plan.root)} has changed since, so it was not restored")
    return UndoPlan(plan.name, plan.root, tuple(remaining), plan.moves, plan.modes, plan.steps), changed_since


def temporary_path(plan: UndoPlan, path: bytes) -> bytes:
    """Return a file's temporary path, which is deterministic so that the file can be removed after a crash."""
    name = f".hark-undo-{plan.name}-{digest_of(path).hex()[:16]}"
    return os.path.join(os.path.dirname(path), name.encode())


def _is_intermediate(change: EntryChange, disk: DiskState) -> bool:
    """Return whether the path is in an intermediate state: removed, or a folder that was made writable."""
    now = disk.entry_at(change.path, None)
    if now is None:
        return True
    return now.kind is EntryKind.FOLDER and change.before is not None and change.before.kind is EntryKind.FOLDER


def _file_identity(entry: ManifestEntry) -> tuple[int, int, int, bytes]:
    return entry.inode, entry.mtime_ns, entry.mode, entry.digest


def _is_non_folder(path: bytes) -> bool:
    try:
        return not stat.S_ISDIR(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _restore_owner(path: bytes, wanted: ManifestEntry) -> None:
    """Restore the path's recorded owner, if the process has the permission."""
    status = os.lstat(path)
    if (status.st_uid, status.st_gid) != (wanted.uid, wanted.gid):
        with suppress(OSError):
            os.chown(path, wanted.uid, wanted.gid, follow_symlinks=False)
