"""Plans an undo: combines the changes of several steps, and checks the disk for conflicts before changing files."""
# File names are bytes here, because they may not be valid text.
# ruff: noqa: PTH115, PTH120

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec import Struct

from hark.protocol.snapshots import UndoRefused
from hark.tools.undo.blobs import BlobStore, digest_of_file
from hark.tools.undo.manifest import (
    EntryChange,
    EntryKind,
    ManifestEntry,
    SkipReason,
    format_path,
    format_size,
    has_same_content,
    is_same_entry,
    kind_of,
    make_entry,
    read_file_entry,
    skip_text,
)

MAX_NAMED_PATHS = 10


class RenameBack(Struct, frozen=True, array_like=True):
    """A rename to undo: the file or folder at `source`, whose content isn't stored, moves back to `target`."""

    source: bytes
    target: bytes


class UndoPlan(Struct, frozen=True):
    """The changes from the current state (`after` of each change) to the earlier one (`before`).

    `modes`: folders that must be writable during the undo, and the modes to restore. `steps`: the paths of the step
    files.
    """

    name: str
    root: bytes
    changes: tuple[EntryChange, ...] = ()
    moves: tuple[RenameBack, ...] = ()
    modes: dict[bytes, int] = {}
    steps: tuple[str, ...] = ()

    @property
    def inverse(self) -> "UndoPlan":
        """The plan that undoes this plan."""
        changes = tuple(EntryChange(change.path, change.after, change.before) for change in self.changes)
        moves = tuple(RenameBack(move.target, move.source) for move in self.moves)
        return UndoPlan(self.name + "-back", self.root, changes, moves, self.modes)


def fold_changes(steps: Iterable[Sequence[EntryChange]]) -> list[EntryChange]:
    """Combine the changes of several steps, given oldest first, as if one step had made them."""
    folded: dict[bytes, EntryChange] = {}
    for changes in steps:
        for change in changes:
            first = folded.get(change.path, change)
            folded[change.path] = EntryChange(change.path, first.before, change.after)
    return [change for change in folded.values() if not is_same_entry(change.before, change.after)]


def make_plan(name: str, root: bytes, changes: Sequence[EntryChange], blobs: BlobStore) -> tuple[UndoPlan, list[str]]:
    """Return the plan, and a line for each change that can't be undone. Stores files that the plan overwrites.

    Raises:
        UndoRefused: A file has changed since the steps ended.
        OSError: A file can't be read.
    """
    moves = list(_find_renames(changes))
    sources, targets = {move.source for move in moves}, {move.target for move in moves}
    not_undoable: list[str] = []
    wanted: list[EntryChange] = []
    for change in changes:
        if change.path in targets or (change.path in sources and change.before is None) or _is_removed_cache(change):
            continue
        if line := _explain_loss(change, root, blobs):
            not_undoable.append(line)
        else:
            wanted.append(change)
    disk = DiskState()
    conflicts = [change.path for change in wanted if not disk.is_as_expected(change)]
    conflicts += [move.target for move in moves if disk.exists(move.target) or not disk.exists(move.source)]
    todo = [change for change in wanted if not disk.is_restored(change)]
    conflicts += _find_obstacles(todo, moves, disk)
    if conflicts:
        raise UndoRefused(_conflict_text(sorted(set(conflicts)), root))
    for change in todo:
        after = change.after
        if after is not None and after.kind is EntryKind.FILE and after.is_restorable and not blobs.has(after.digest):
            blobs.store_file(change.path)
    touched = [*(change.path for change in todo), *sources, *targets]
    modes = _unwritable_folders(touched, {change.path for change in todo})
    return UndoPlan(name, root, tuple(todo), tuple(moves), modes), not_undoable


class DiskState:
    """The current state of the disk. Never follows links, because a link's target is another path."""

    def __init__(self) -> None:
        self._folders: dict[bytes, bool] = {}

    def entry_at(self, path: bytes, expected: ManifestEntry | None) -> ManifestEntry | None:
        """Return the entry at the path, or None. Doesn't read a file whose timestamps match `expected`."""
        if not self.is_folder(os.path.dirname(path)):
            return None
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return None
        kind = kind_of(status.st_mode)
        if kind is EntryKind.LINK:
            return make_entry(status, kind, os.readlink(path))
        if kind is not EntryKind.FILE or expected is None or not expected.digest:
            return make_entry(status, kind)
        if expected.is_untouched(status):
            return make_entry(status, kind, expected.digest)
        return read_file_entry(path, status, lambda path: (digest_of_file(path), status))

    def exists(self, path: bytes) -> bool:
        """Return whether anything exists at the path."""
        return self.entry_at(path, None) is not None

    def is_folder(self, path: bytes) -> bool:
        """Return whether the path and all its parents are folders."""
        unknown: list[bytes] = []
        while path not in self._folders and path != os.path.dirname(path):
            unknown.append(path)
            path = os.path.dirname(path)
        are_all_folders = self._folders.get(path, True)
        for folder in reversed(unknown):
            try:
                are_all_folders = are_all_folders and stat.S_ISDIR(os.lstat(folder).st_mode)
            except OSError:
                are_all_folders = False
            self._folders[folder] = are_all_folders
        return are_all_folders

    def is_restored(self, change: EntryChange) -> bool:
        """Return whether the path is as it was before the step. A folder removed by the step only has to exist."""
        now = self.entry_at(change.path, change.before)
        if change.after is None and change.before is not None and change.before.kind is EntryKind.FOLDER:
            return now is not None and now.kind is EntryKind.FOLDER
        return is_same_entry(now, change.before)

    def is_as_expected(self, change: EntryChange) -> bool:
        """Return whether the path is in its state after the step, or already in its state before the step."""
        if self.is_restored(change):
            return True
        now, after = self.entry_at(change.path, change.after), change.after
        if after is not None and change.before is None and after.kind in (EntryKind.FOLDER, EntryKind.SKIPPED):
            return now is not None and now.kind is EntryKind.FOLDER
        return is_same_entry(now, after)


def _find_renames(changes: Sequence[EntryChange]) -> Iterator[RenameBack]:
    """Yield files and folders without stored content that were only renamed (same inode)."""
    created = {
        change.after.inode: change
        for change in changes
        if change.after is not None and (change.before is None or change.before.is_restorable)
    }
    for change in changes:
        removed = change.before
        if removed is None or removed.is_restorable or change.after is not None:
            continue
        found = created.get(removed.inode)
        if found is not None and found.after is not None and removed.is_moved_to(found.after):
            yield RenameBack(found.path, change.path)


def _is_removed_cache(change: EntryChange) -> bool:
    return change.before is not None and change.before.why_not == SkipReason.CACHE


def _explain_loss(change: EntryChange, root: bytes, blobs: BlobStore) -> str:
    """Return the reason why a change can't be undone, or "" if it can."""
    name, before, after = format_path(change.path, root), change.before, change.after
    if before is None:
        is_staying = after is not None and after.kind is EntryKind.SKIPPED and after.why_not != SkipReason.CACHE
        return f"{name} was created and not removed: {skip_text(after.why_not)}" if is_staying and after else ""
    verb = "removed" if after is None else "changed"
    if (
        before.kind is EntryKind.FILE
        and after is not None
        and after.kind is EntryKind.FILE
        and has_same_content(before, after)
    ):
        return ""  # only the mode changed, which needs no content
    if not before.is_restorable:
        size = f" ({format_size(before.size)})" if before.kind is EntryKind.FILE else ""
        return f"{name}{size} was {verb} and can't be restored: {skip_text(before.why_not) or 'not a regular file'}"
    if before.kind is EntryKind.FILE and not blobs.is_intact(before.digest):
        return f"{name} was {verb} and can't be restored: the stored copy is missing or damaged"
    return ""


def _find_obstacles(todo: Sequence[EntryChange], moves: Sequence[RenameBack], disk: DiskState) -> Iterator[bytes]:
    """Yield paths that block a restore: a link or file in place of a folder, or unknown files in a folder."""
    planned = {change.path: change for change in todo}
    removed_paths = {change.path for change in todo if change.before is None} | {move.source for move in moves}
    unscanned = {c.path for c in todo if c.after and c.after.kind is EntryKind.SKIPPED} | {
        move.source for move in moves
    }
    for path in [*(c.path for c in todo if c.before is not None), *(move.target for move in moves)]:
        folder = os.path.dirname(path)
        while not disk.is_folder(folder) and len(folder) > 1:
            change = planned.get(folder)
            is_restored = change is not None and change.before is not None and change.before.kind is EntryKind.FOLDER
            if not is_restored and disk.exists(folder):
                yield folder
            folder = os.path.dirname(folder)
    for change in todo:
        if change.before is not None and change.before.kind is not EntryKind.FOLDER and disk.is_folder(change.path):
            yield from (path for path in _paths_below(change.path, unscanned) if path not in removed_paths)


def _paths_below(folder: bytes, unscanned: set[bytes]) -> Iterator[bytes]:
    for parent, folders, files in os.walk(folder):
        yield from (parent + b"/" + name for name in (*folders, *files))
        folders[:] = [name for name in folders if parent + b"/" + name not in unscanned]


def _unwritable_folders(touched: Iterable[bytes], planned: set[bytes]) -> dict[bytes, int]:
    modes: dict[bytes, int] = {}
    for folder in {os.path.dirname(path) for path in touched} - planned:
        with suppress(FileNotFoundError, NotADirectoryError):
            mode = stat.S_IMODE(os.lstat(folder).st_mode)
            if mode & 0o300 != 0o300:
                modes[folder] = mode
    return modes


def restored_names(plan: UndoPlan, remaining: Sequence[bytes]) -> tuple[str, ...]:
    """Return the names of the restored files and folders. Names of folders end with a slash."""
    names = {move.target: "" for move in plan.moves}
    for change in plan.changes:
        is_folder = any(entry is not None and entry.kind is EntryKind.FOLDER for entry in (change.before, change.after))
        names[change.path] = "/" if is_folder else ""
    return tuple(format_path(path, plan.root) + names[path] for path in sorted(names) if path not in remaining)


def limit_lines(lines: Sequence[str]) -> list[str]:
    """Truncate a long list of lines, and add a line with the number of omitted lines."""
    more = len(lines) - MAX_NAMED_PATHS * 2
    return [*lines[: MAX_NAMED_PATHS * 2], f"and {more} more"] if more > 0 else list(lines)


def _conflict_text(paths: Sequence[bytes], root: bytes) -> str:
    """Return an error message that lists the files changed after the undone steps and explains what to do."""
    names = [format_path(path, root) for path in paths]
    more = f" and {len(names) - MAX_NAMED_PATHS} more" if len(names) > MAX_NAMED_PATHS else ""
    verb = "was" if len(names) == 1 else "were"
    return (
        f"Nothing was undone: {', '.join(names[:MAX_NAMED_PATHS])}{more} {verb} changed since the step. "
        "Move your version away or restore the step's version, then undo again."
    )


def describe_os_error(error: OSError) -> str:
    """Return the error's reason, and the name of the affected file if it is known."""
    name = format_path(os.fsencode(error.filename), b"") if isinstance(error.filename, str | bytes) else ""
    return f"{name + ': ' if name else ''}{(error.strerror or str(error)).lower()}"
