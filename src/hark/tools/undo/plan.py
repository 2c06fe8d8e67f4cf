"""What an undo would do: several steps folded into one plan, checked against the disk before anything is touched."""
# Names of files are bytes here, and needn't be text.
# ruff: noqa: PTH115, PTH120

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec import Struct

from hark.protocol.snapshots import UndoRefused
from hark.tools.undo.blobs import Blobs, digest_of_file
from hark.tools.undo.manifest import (
    EntryChange,
    EntryKind,
    ManifestEntry,
    Why,
    entry_of,
    has_same_content,
    is_same,
    kind_of,
    read_file,
    show_path,
    show_size,
)

NAMED_LIMIT = 10


class RenameBack(Struct, frozen=True, array_like=True):
    """Something whose content isn't kept got another name: it is moved back from `source` to `target`."""

    source: bytes
    target: bytes


class Plan(Struct, frozen=True):
    """A way from what is (`after` of each change) to what was (`before`).

    `modes`: folders that must be made writable for it, with what to put back. `steps`: the files of the steps.
    """

    name: str
    root: bytes
    changes: tuple[EntryChange, ...] = ()
    moves: tuple[RenameBack, ...] = ()
    modes: dict[bytes, int] = {}
    steps: tuple[str, ...] = ()

    @property
    def way_back(self) -> "Plan":
        """The plan that undoes this one."""
        changes = tuple(EntryChange(change.path, change.after, change.before) for change in self.changes)
        moves = tuple(RenameBack(move.target, move.source) for move in self.moves)
        return Plan(self.name + "-back", self.root, changes, moves, self.modes)


def fold(steps: Iterable[Sequence[EntryChange]]) -> list[EntryChange]:
    """Return the changes of several steps, oldest first, as those of one."""
    folded: dict[bytes, EntryChange] = {}
    for changes in steps:
        for change in changes:
            first = folded.get(change.path, change)
            folded[change.path] = EntryChange(change.path, first.before, change.after)
    return [change for change in folded.values() if not is_same(change.before, change.after)]


def make_plan(name: str, root: bytes, changes: Sequence[EntryChange], blobs: Blobs) -> tuple[Plan, list[str]]:
    """Return the plan, and what can't be undone, with why. Keeps what the plan will overwrite.

    Raises:
        UndoRefused: A file is not as the steps left it.
        OSError: Something can't be read.
    """
    moves = list(_moves(changes))
    sources, targets = {move.source for move in moves}, {move.target for move in moves}
    lost: list[str] = []
    wanted: list[EntryChange] = []
    for change in changes:
        if change.path in targets or (change.path in sources and change.before is None) or _is_gone_cache(change):
            continue
        if line := _loss(change, root, blobs):
            lost.append(line)
        else:
            wanted.append(change)
    disk = Disk()
    conflicts = [change.path for change in wanted if not disk.fits(change)]
    conflicts += [move.target for move in moves if disk.exists(move.target) or not disk.exists(move.source)]
    todo = [change for change in wanted if not disk.is_done(change)]
    conflicts += _obstacles(todo, moves, disk)
    if conflicts:
        raise UndoRefused(_conflict_text(sorted(set(conflicts)), root))
    for change in todo:
        after = change.after
        if after is not None and after.kind is EntryKind.FILE and after.is_kept and not blobs.has(after.digest):
            blobs.keep_file(change.path)
    touched = [*(change.path for change in todo), *sources, *targets]
    modes = _locked_folders(touched, {change.path for change in todo})
    return Plan(name, root, tuple(todo), tuple(moves), modes), lost


class Disk:
    """What is there now. Never looks through a link: what is behind one is another place."""

    def __init__(self) -> None:
        self._folders: dict[bytes, bool] = {}

    def now(self, path: bytes, expected: ManifestEntry | None) -> ManifestEntry | None:
        """Return what is there; a file is only read where its times don't tell that it is as expected."""
        if not self.is_folder(os.path.dirname(path)):
            return None
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return None
        kind = kind_of(status.st_mode)
        if kind is EntryKind.LINK:
            return entry_of(status, kind, os.readlink(path))
        if kind is not EntryKind.FILE or expected is None or not expected.digest:
            return entry_of(status, kind)
        if expected.is_untouched(status):
            return entry_of(status, kind, expected.digest)
        return read_file(path, status, lambda path: (digest_of_file(path), status))

    def exists(self, path: bytes) -> bool:
        """Return whether anything is there."""
        return self.now(path, None) is not None

    def is_folder(self, path: bytes) -> bool:
        """Return whether it is a folder, and so is all above it."""
        unknown: list[bytes] = []
        while path not in self._folders and path != os.path.dirname(path):
            unknown.append(path)
            path = os.path.dirname(path)
        is_one = self._folders.get(path, True)
        for place in reversed(unknown):
            try:
                is_one = is_one and stat.S_ISDIR(os.lstat(place).st_mode)
            except OSError:
                is_one = False
            self._folders[place] = is_one
        return is_one

    def is_done(self, change: EntryChange) -> bool:
        """Return whether it is already as it was before. A folder that is there again is good enough."""
        now = self.now(change.path, change.before)
        if change.after is None and change.before is not None and change.before.kind is EntryKind.FOLDER:
            return now is not None and now.kind is EntryKind.FOLDER
        return is_same(now, change.before)

    def fits(self, change: EntryChange) -> bool:
        """Return whether it is as the step left it, or already as before."""
        if self.is_done(change):
            return True
        now, after = self.now(change.path, change.after), change.after
        if after is not None and change.before is None and after.kind in (EntryKind.FOLDER, EntryKind.SKIPPED):
            return now is not None and now.kind is EntryKind.FOLDER
        return is_same(now, after)


def _moves(changes: Sequence[EntryChange]) -> Iterator[RenameBack]:
    """Yield what was not kept and is found again, the very same, under another name."""
    made = {
        change.after.inode: change
        for change in changes
        if change.after is not None and (change.before is None or change.before.is_kept)
    }
    for change in changes:
        gone = change.before
        if gone is None or gone.is_kept or change.after is not None:
            continue
        found = made.get(gone.inode)
        if found is not None and found.after is not None and gone.is_moved_to(found.after):
            yield RenameBack(found.path, change.path)


def _is_gone_cache(change: EntryChange) -> bool:
    return change.before is not None and change.before.why_not == Why.CACHE


def _loss(change: EntryChange, root: bytes, blobs: Blobs) -> str:
    """Return why a change can't be undone; "" if it can."""
    name, before, after = show_path(change.path, root), change.before, change.after
    if before is None:
        stays = after is not None and after.kind is EntryKind.SKIPPED and after.why_not != Why.CACHE
        return f"{name} was made and stays: {after.why_not}" if stays and after else ""
    what = "removed" if after is None else "changed"
    if (
        before.kind is EntryKind.FILE
        and after is not None
        and after.kind is EntryKind.FILE
        and has_same_content(before, after)
    ):
        return ""  # the mode alone: it needs no content
    if not before.is_kept:
        size = f" ({show_size(before.size)})" if before.kind is EntryKind.FILE else ""
        return f"{name}{size} was {what} and can't be undone: {before.why_not or 'it is no plain file'}"
    if before.kind is EntryKind.FILE and not blobs.is_whole(before.digest):
        return f"{name} was {what} and can't be undone: the kept copy is missing or damaged"
    return ""


def _obstacles(todo: Sequence[EntryChange], moves: Sequence[RenameBack], disk: Disk) -> Iterator[bytes]:
    """Yield what stands where something must come back: a link or file for a folder, foreign files in a folder."""
    planned = {change.path: change for change in todo}
    goes = {change.path for change in todo if change.before is None} | {move.source for move in moves}
    closed = {c.path for c in todo if c.after and c.after.kind is EntryKind.SKIPPED} | {move.source for move in moves}
    for path in [*(c.path for c in todo if c.before is not None), *(move.target for move in moves)]:
        folder = os.path.dirname(path)
        while not disk.is_folder(folder) and len(folder) > 1:
            change = planned.get(folder)
            comes_back = change is not None and change.before is not None and change.before.kind is EntryKind.FOLDER
            if not comes_back and disk.exists(folder):
                yield folder
            folder = os.path.dirname(folder)
    for change in todo:
        if change.before is not None and change.before.kind is not EntryKind.FOLDER and disk.is_folder(change.path):
            yield from (path for path in _below(change.path, closed) if path not in goes)


def _below(folder: bytes, closed: set[bytes]) -> Iterator[bytes]:
    for place, folders, files in os.walk(folder):
        yield from (place + b"/" + name for name in (*folders, *files))
        folders[:] = [name for name in folders if place + b"/" + name not in closed]


def _locked_folders(touched: Iterable[bytes], planned: set[bytes]) -> dict[bytes, int]:
    modes: dict[bytes, int] = {}
    for folder in {os.path.dirname(path) for path in touched} - planned:
        with suppress(FileNotFoundError, NotADirectoryError):
            mode = stat.S_IMODE(os.lstat(folder).st_mode)
            if mode & 0o300 != 0o300:
                modes[folder] = mode
    return modes


def restored_names(plan: Plan, staying: Sequence[bytes]) -> tuple[str, ...]:
    """Return what is as before again; folders with a slash."""
    names = {move.target: "" for move in plan.moves}
    for change in plan.changes:
        is_folder = any(entry is not None and entry.kind is EntryKind.FOLDER for entry in (change.before, change.after))
        names[change.path] = "/" if is_folder else ""
    return tuple(show_path(path, plan.root) + names[path] for path in sorted(names) if path not in staying)


def few(lines: Sequence[str]) -> list[str]:
    """Return as many lines as a person reads."""
    more = len(lines) - NAMED_LIMIT * 2
    return [*lines[: NAMED_LIMIT * 2], f"and {more} more like this"] if more > 0 else list(lines)


def _conflict_text(paths: Sequence[bytes], root: bytes) -> str:
    """Return which files are not as the steps left them, and what to do."""
    names = [show_path(path, root) for path in paths]
    more = f" and {len(names) - NAMED_LIMIT} more" if len(names) > NAMED_LIMIT else ""
    verb = "was" if len(names) == 1 else "were"
    return (
        f"Nothing was undone: {', '.join(names[:NAMED_LIMIT])}{more} {verb} changed since. "
        "Move your version away or put back what the step left, then undo again."
    )


def reason_text(error: OSError) -> str:
    """Return what went wrong, and with which file."""
    name = show_path(os.fsencode(error.filename), b"") if isinstance(error.filename, str | bytes) else ""
    return f"{name + ': ' if name else ''}{(error.strerror or str(error)).lower()}"
