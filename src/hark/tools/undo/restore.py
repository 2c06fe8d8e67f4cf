"""A plan, carried out: file by file, each by one rename, and back again if it fails in the middle."""
# Names of files are bytes here, and needn't be text.
# ruff: noqa: PTH101, PTH103, PTH104, PTH105, PTH106, PTH108, PTH112, PTH114, PTH118, PTH120, PTH211

import errno
import os
import shutil
import stat
from contextlib import suppress

from hark.tools.undo.blobs import Blobs, digest_of
from hark.tools.undo.manifest import EntryChange, EntryKind, ManifestEntry, Why, has_same_content, show_path
from hark.tools.undo.plan import Disk, Plan

FULL_FOLDER = (errno.ENOTEMPTY, errno.EEXIST)


class Restore:
    """Carries out one plan. What it finds done it leaves alone, so that it can go on after a crash."""

    def __init__(self, plan: Plan, blobs: Blobs) -> None:
        self._plan = plan
        self._blobs = blobs
        self._twins: dict[tuple[int, int, int, bytes], bytes] = {}  # hard links: what was one file becomes one again
        self.staying: list[bytes] = []  # folders that the steps made and that hold something else by now

    def run(self) -> None:
        """Do all of it, in an order in which folders are there when they are needed.

        Raises:
            OSError: It is done in part: run the way back, or run it again.
        """
        self._open_folders()
        self._remove_files()
        self._make_folders()
        self._move()
        self._remove_folders()
        for change in self._plan.changes:
            self._put(change)
        self._close_folders()

    def _open_folders(self) -> None:
        present = [c.path for c in self._plan.changes if c.after is not None and c.after.kind is EntryKind.FOLDER]
        disk = Disk()
        for path in sorted({*self._plan.modes, *self._wanted_folders(), *present}, key=len):
            if disk.is_folder(path):
                mode = stat.S_IMODE(os.lstat(path).st_mode)
                if mode & 0o700 != 0o700:
                    os.chmod(path, mode | 0o700)

    def _remove_files(self) -> None:
        # From the top: a link that took a folder's place must be gone before anything is looked for behind it.
        for change in sorted(self._plan.changes, key=lambda change: len(change.path)):
            if (change.before is None or change.before.kind is EntryKind.FOLDER) and _is_non_folder(change.path):
                os.unlink(change.path)

    def _make_folders(self) -> None:
        for path, wanted in sorted(self._wanted_folders().items(), key=lambda one: len(one[0])):
            if not os.path.isdir(path):
                os.makedirs(path)
                _give(path, wanted)
                os.chmod(path, wanted.mode | 0o700)

    def _move(self) -> None:
        for move in self._plan.moves:
            if os.path.lexists(move.source) and not os.path.lexists(move.target):
                os.makedirs(os.path.dirname(move.target), exist_ok=True)
                os.rename(move.source, move.target)

    def _remove_folders(self) -> None:
        """Remove the folders that were not there, the deepest first; caches with all that is in them."""
        made = [c for c in self._plan.changes if c.before is None or c.before.kind is not EntryKind.FOLDER]
        for change in sorted(made, key=lambda change: len(change.path), reverse=True):
            if change.after is None or not os.path.isdir(change.path) or os.path.islink(change.path):
                continue
            if change.after.kind is EntryKind.SKIPPED:
                if change.before is None and change.after.why_not == Why.CACHE:
                    shutil.rmtree(change.path)
                continue
            try:
                os.rmdir(change.path)
            except OSError as error:
                if error.errno not in FULL_FOLDER:
                    raise
                self.staying.append(change.path)

    def _put(self, change: EntryChange) -> None:
        wanted = change.before
        if wanted is None or wanted.kind in (EntryKind.FOLDER, EntryKind.OTHER, EntryKind.SKIPPED):
            return
        is_same_file = change.after is not None and change.after.kind is wanted.kind is EntryKind.FILE
        if is_same_file and change.after is not None and has_same_content(wanted, change.after):
            os.chmod(change.path, wanted.mode)
            return
        if not wanted.is_kept:
            return  # only on a way back: what was too big to keep was removed, and stays so
        os.makedirs(os.path.dirname(change.path), exist_ok=True)
        temporary = temporary_path(self._plan, change.path)
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        try:
            twin = self._twins.get(_identity(wanted))
            if twin is not None and wanted.kind is EntryKind.FILE:
                os.link(twin, temporary)
            else:
                self._make(temporary, wanted)
            os.replace(temporary, change.path)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        self._twins[_identity(wanted)] = change.path

    def _make(self, path: bytes, wanted: ManifestEntry) -> None:
        if wanted.kind is EntryKind.LINK:
            os.symlink(wanted.digest, path)
            _give(path, wanted)
            return
        if wanted.kind is EntryKind.PIPE:
            os.mkfifo(path, 0o600)
        else:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                self._blobs.write_to(wanted.digest, file)
            finally:
                os.close(file)
        _give(path, wanted)
        os.chmod(path, wanted.mode)

    def _close_folders(self) -> None:
        modes = {**self._plan.modes, **{path: wanted.mode for path, wanted in self._wanted_folders().items()}}
        for path in sorted(modes, key=len, reverse=True):
            with suppress(FileNotFoundError):
                if stat.S_IMODE(os.lstat(path).st_mode) != modes[path]:
                    os.chmod(path, modes[path])

    def _wanted_folders(self) -> dict[bytes, ManifestEntry]:
        changes = self._plan.changes
        return {c.path: c.before for c in changes if c.before is not None and c.before.kind is EntryKind.FOLDER}


def still_fitting(plan: Plan) -> tuple[Plan, list[str]]:
    """Return what is left of a plan that a crash cut, and what must be left alone because it changed since.

    Raises:
        OSError: Something can't be read.
    """
    for change in plan.changes:
        with suppress(OSError):  # mostly there is none
            os.unlink(temporary_path(plan, change.path))
    disk = Disk()
    sources = {move.source for move in plan.moves}
    fitting: list[EntryChange] = []
    foreign: list[str] = []
    for change in plan.changes:
        is_moved = change.path in sources and not disk.exists(change.path)
        if is_moved or disk.fits(change) or _is_way(change, disk):
            fitting.append(change)
        else:
            foreign.append(f"{show_path(change.path, plan.root)} was changed since, and stays as it is")
    return Plan(plan.name, plan.root, tuple(fitting), plan.moves, plan.modes, plan.steps), foreign


def temporary_path(plan: Plan, path: bytes) -> bytes:
    """Return where a file is made before it gets its name: the same after a crash, so that it can be removed."""
    name = f".hark-undo-{plan.name}-{digest_of(path).hex()[:16]}"
    return os.path.join(os.path.dirname(path), name.encode())


def _is_way(change: EntryChange, disk: Disk) -> bool:
    """Return whether it is neither as before nor as after, but between: removed, or a folder open for the work."""
    now = disk.now(change.path, None)
    if now is None:
        return True
    return now.kind is EntryKind.FOLDER and change.before is not None and change.before.kind is EntryKind.FOLDER


def _identity(entry: ManifestEntry) -> tuple[int, int, int, bytes]:
    return entry.inode, entry.mtime_ns, entry.mode, entry.digest


def _is_non_folder(path: bytes) -> bool:
    try:
        return not stat.S_ISDIR(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _give(path: bytes, wanted: ManifestEntry) -> None:
    """Give it to its owner, where that is allowed."""
    status = os.lstat(path)
    if (status.st_uid, status.st_gid) != (wanted.uid, wanted.gid):
        with suppress(OSError):
            os.chown(path, wanted.uid, wanted.gid, follow_symlinks=False)
