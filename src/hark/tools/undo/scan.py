"""Scans a workspace: records all entries and stores new file contents, within limits."""
# File names are bytes here, because they may not be valid text.
# ruff: noqa: PTH115, PTH119

import os
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from threading import Event

import msgspec
from msgspec import Struct

from hark.disk.gitignore import GIT, IgnoreScope
from hark.disk.private_files import replace_file
from hark.disk.tree_walk import WalkFolder
from hark.tools.undo.blobs import BlobStore, digest_of
from hark.tools.undo.manifest import (
    EntryKind,
    Manifest,
    ManifestEntry,
    SkipReason,
    digest_of_head,
    kind_of,
    make_entry,
    read_file_entry,
    reason_not_stored,
)
from hark.tools.undo.retention import store_generation

# Caches that tools create again. They are removed with the step that created them, and never restored.
CACHES = frozenset((b"__pycache__", b".pytest_cache", b".mypy_cache", b".ruff_cache", b".hypothesis"))
HEAVY_FOLDERS = frozenset((b"node_modules", b".venv", b".tox", b".nox", b".gradle", b".terraform", b".direnv"))
HEAVY_FOLDER_MARKERS = frozenset((b"pyvenv.cfg", b"CACHEDIR.TAG"))


class ScanLimits(Struct, frozen=True):
    """The limits of one scan."""

    files: int = 50_000
    file_bytes: int = 20_000_000
    new_bytes: int = 500_000_000
    seconds: float = 2.0


class ScanCancelled(Exception):
    """The scan was cancelled because no caller is waiting for it any more."""


class Scan:
    """One scan. `cache` holds the entries of an earlier scan, so that unchanged files aren't read again.

    With `like`, the scan enters all new folders and the same folders as that manifest, whatever .gitignore says now.
    New folders were created by the step, so they can be removed without a stored copy.
    """

    def __init__(
        self,
        blobs: BlobStore,
        home: bytes,
        limits: ScanLimits,
        stop: Event,
        cache: Mapping[bytes, ManifestEntry],
        like: Manifest | None = None,
    ) -> None:
        self._blobs = blobs
        self._home = home
        self._limits = limits
        self._stop = stop
        self._deadline = time.monotonic() + limits.seconds
        self._entries: dict[bytes, ManifestEntry] = {}
        self._unread: list[tuple[bytes, os.stat_result]] = []
        self._cache = cache
        self._like = like
        earlier = like.entries if like else {}
        self._entries_left = limits.files + len(earlier)
        self._skipped_inodes = {e.inode: e for e in earlier.values() if e.kind is EntryKind.SKIPPED}

    def run(self, scopes: tuple[bytes, ...]) -> Manifest:
        """Return a manifest of everything at and below the scopes. Call it only once per scan.

        Raises:
            ScanCancelled: The stop flag was set. It is checked between files.
        """
        for scope in scopes:
            self._scan_scope(scope)
        self._store_contents()
        return Manifest(scopes, self._entries)

    def _scan_scope(self, scope: bytes) -> None:
        known = self._entries.get(scope)
        if known is not None and known.kind is not EntryKind.SKIPPED:
            return  # a wider scope included it
        try:
            status = os.lstat(scope)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._entries[scope] = ManifestEntry(EntryKind.OTHER, 0, 0, 0, 0, 0, 0, 0, why_not=reason_not_stored(error))
            return
        self._add_entry(scope, status)
        if kind_of(status.st_mode) is EntryKind.FOLDER:
            self._walk_folders(scope, status)

    def _walk_folders(self, scope: bytes, status: os.stat_result) -> None:
        """Scan folders in order of depth. If there are too many, the deepest folders are skipped."""
        pending = deque([(WalkFolder(scope, IgnoreScope()), True)])
        while pending:
            folder, stores_content = pending.popleft()
            if why := self._skip_reason_before_reading(folder.path):
                self._mark_skipped(folder.path, why)
                continue
            try:
                items = folder.read()
            except OSError:
                self._mark_skipped(folder.path, SkipReason.UNREADABLE)
                continue
            if why := self._skip_reason_by_names(folder.names, is_scope=folder.path == scope):
                self._mark_skipped(folder.path, why)
                continue
            self._entries_left -= len(items)
            stores_content = stores_content and not self._is_new_heavy_folder(folder)
            for item in items:
                if self._scan_item(item, folder, status.st_dev, stores_content=stores_content):
                    pending.append((folder.subfolder(item), stores_content))

    def _scan_item(
        self, item: "os.DirEntry[bytes]", folder: WalkFolder[bytes], device: int, *, stores_content: bool
    ) -> bool:
        """Add one directory entry. Return whether it is a folder to descend into."""
        if self._stop.is_set():
            raise ScanCancelled
        try:
            status = item.stat(follow_symlinks=False)
        except OSError:
            return False  # deleted meanwhile
        self._add_entry(item.path, status, stores_content=stores_content)
        if not item.is_dir(follow_symlinks=False):
            return False
        why = SkipReason.MOUNT if status.st_dev != device else self._item_skip_reason(item, status, folder)
        if why:
            self._mark_skipped(item.path, why)
        return not why

    def _item_skip_reason(self, item: "os.DirEntry[bytes]", status: os.stat_result, folder: WalkFolder[bytes]) -> str:
        earlier = self._like.entries.get(item.path) if self._like else None
        if earlier is not None and earlier.kind is EntryKind.SKIPPED:
            return earlier.why_not
        if item.path == self._home:
            return SkipReason.HOME
        if earlier is not None and earlier.kind is EntryKind.FOLDER:
            return ""
        if item.name == GIT:
            return SkipReason.GIT
        if item.name in CACHES:
            return SkipReason.CACHE
        if self._like is not None:
            moved = self._skipped_inodes.get(status.st_ino)
            return moved.why_not if moved and moved.mtime_ns == status.st_mtime_ns else ""
        is_ignored = item.name in HEAVY_FOLDERS or folder.ignores.is_ignored(item.path, is_folder=True)
        return SkipReason.IGNORED if is_ignored else ""

    def _is_new_heavy_folder(self, folder: WalkFolder[bytes]) -> bool:
        """Return whether the step created this folder, and a scan would normally skip it as heavy or ignored."""
        if self._like is None or folder.path in self._like.entries:
            return False
        is_heavy = os.path.basename(folder.path) in HEAVY_FOLDERS or not folder.names.isdisjoint(HEAVY_FOLDER_MARKERS)
        return is_heavy or folder.ignores.is_ignored(folder.path, is_folder=True)

    def _skip_reason_before_reading(self, folder: bytes) -> str:
        if self._stop.is_set():
            raise ScanCancelled
        if folder == self._home:
            return SkipReason.HOME
        return SkipReason.TOO_SLOW if time.monotonic() > self._deadline else ""

    def _skip_reason_by_names(self, names: set[bytes], *, is_scope: bool) -> str:
        if len(names) > self._entries_left:
            return SkipReason.TOO_MANY
        is_heavy = self._like is None and not is_scope and not names.isdisjoint(HEAVY_FOLDER_MARKERS)
        return SkipReason.IGNORED if is_heavy else ""

    def _add_entry(self, path: bytes, status: os.stat_result, *, stores_content: bool = True) -> None:
        kind = kind_of(status.st_mode)
        if kind is EntryKind.LINK:
            try:
                self._entries[path] = make_entry(status, kind, os.readlink(path))
            except OSError as error:
                self._entries[path] = make_entry(status, EntryKind.OTHER, why_not=reason_not_stored(error))
            return
        if kind is EntryKind.FILE and not stores_content:
            self._entries[path] = make_entry(status, kind, why_not=SkipReason.IGNORED)
            return
        if kind is EntryKind.FILE:
            known = self._cache.get(path)
            if known is not None and known.digest and known.is_untouched(status) and known.kind is EntryKind.FILE:
                self._entries[path] = known
                return
            self._unread.append((path, status))
        self._entries[path] = make_entry(status, kind)

    def _mark_skipped(self, folder: bytes, why: str) -> None:
        found = self._entries[folder]
        digest = digest_of_head(folder) if why == SkipReason.GIT else b""
        self._entries[folder] = msgspec.structs.replace(
            found, kind=EntryKind.SKIPPED, size=0, digest=digest, why_not=why, is_settled=False
        )

    def _store_contents(self) -> None:
        """Store new contents, smallest files first, so that as many files as possible are stored within the limits."""
        bytes_left = self._limits.new_bytes
        for path, status in sorted(self._unread, key=lambda one: one[1].st_size):
            if self._stop.is_set():
                raise ScanCancelled
            if status.st_size > self._limits.file_bytes:
                self._entries[path] = make_entry(status, EntryKind.FILE, why_not="too big to store")
            elif time.monotonic() > self._deadline:
                self._entries[path] = make_entry(status, EntryKind.FILE, why_not=SkipReason.TOO_SLOW)
            elif status.st_size > bytes_left:
                self._entries[path] = make_entry(status, EntryKind.FILE, why_not="too much to store at once")
            else:
                bytes_left -= status.st_size
                self._entries[path] = read_file_entry(path, status, self._blobs.store_file)


class LastScans:
    """The last scan of each workspace, in memory and on disk, so that unchanged files aren't read again.

    The caller must hold the store's lock.
    """

    def __init__(self, folder: Path, blobs: BlobStore) -> None:
        self._folder = folder
        self._blobs = blobs
        self._entries: dict[bytes, dict[bytes, ManifestEntry]] = {}
        self._generation = store_generation(folder)

    def entries_of(self, root: bytes) -> dict[bytes, ManifestEntry]:
        """Return the entries of a workspace's last scan, or none if no scan exists or a cleanup removed its blobs."""
        now = store_generation(self._folder)
        if now != self._generation:  # a cleanup, possibly by another process, may have removed contents
            self._entries.clear()
            self._generation = now
        if root not in self._entries:
            try:
                digest = bytes.fromhex(self._pointer_path(root).read_text())
                self._entries[root] = msgspec.msgpack.decode(self._blobs.read(digest), type=Manifest).entries
            except (OSError, ValueError, msgspec.DecodeError):
                self._entries[root] = {}
        return self._entries[root]

    def remember(self, root: bytes, entries: dict[bytes, ManifestEntry]) -> None:
        """Set the entries of a workspace's last scan for this process."""
        self._entries[root] = entries

    def save(self, root: bytes, digest: bytes) -> None:
        """Save the digest of the last scan's blob for the next process.

        Raises:
            OSError: The digest can't be written.
        """
        replace_file(self._pointer_path(root), digest.hex().encode(), is_durable=False)

    def _pointer_path(self, root: bytes) -> Path:
        return self._folder / "roots" / digest_of(root).hex()[:32]
