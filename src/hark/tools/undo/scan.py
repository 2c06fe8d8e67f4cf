"""A look at a workspace: all its names, with the contents kept that aren't yet, within a budget."""
# Names of files are bytes here, and needn't be text.
# ruff: noqa: PTH115, PTH119

import os
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from threading import Event

import msgspec
from msgspec import Struct

from hark.disk.gitignore import GIT, Ignores
from hark.disk.private_files import replace_private
from hark.disk.tree_walk import WalkFolder
from hark.tools.undo.blobs import Blobs, digest_of
from hark.tools.undo.manifest import (
    EntryKind,
    Manifest,
    ManifestEntry,
    Why,
    entry_of,
    head_of,
    kind_of,
    read_file,
    reason_of,
)
from hark.tools.undo.retention import generation

# What a tool makes again by itself: it is removed with the step that made it, and not missed.
CACHES = frozenset((b"__pycache__", b".pytest_cache", b".mypy_cache", b".ruff_cache", b".hypothesis"))
HEAVY = frozenset((b"node_modules", b".venv", b".tox", b".nox", b".gradle", b".terraform", b".direnv"))
HEAVY_MARKS = frozenset((b"pyvenv.cfg", b"CACHEDIR.TAG"))


class ScanLimits(Struct, frozen=True):
    """What one look may cost."""

    files: int = 50_000
    file_bytes: int = 20_000_000
    new_bytes: int = 500_000_000
    seconds: float = 2.0


class ScanCancelled(Exception):
    """Nobody waits for this look any more."""


class Scan:
    """One look. The cache is an earlier one: what is untouched since isn't read again.

    With `like`, the same folders are looked into as then, whatever .gitignore says by now, and all new ones:
    these are the step's own, and can be removed without having been kept.
    """

    def __init__(
        self,
        blobs: Blobs,
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
        self._room = limits.files + len(earlier)
        self._skipped_inodes = {e.inode: e for e in earlier.values() if e.kind is EntryKind.SKIPPED}

    def take(self, scopes: tuple[bytes, ...]) -> Manifest:
        """Return all that is at and below the scopes. Only once per Look.

        Raises:
            Stopped: The stop flag was set; checked between files.
        """
        for scope in scopes:
            self._look_at(scope)
        self._read()
        return Manifest(scopes, self._entries)

    def _look_at(self, scope: bytes) -> None:
        known = self._entries.get(scope)
        if known is not None and known.kind is not EntryKind.SKIPPED:
            return  # a wider scope had it
        try:
            status = os.lstat(scope)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._entries[scope] = ManifestEntry(EntryKind.OTHER, 0, 0, 0, 0, 0, 0, 0, why_not=reason_of(error))
            return
        self._add(scope, status)
        if kind_of(status.st_mode) is EntryKind.FOLDER:
            self._walk(scope, status)

    def _walk(self, scope: bytes, status: os.stat_result) -> None:
        """Go through folders in order of depth: if there are too many, the deep ones are left out."""
        waiting = deque([(WalkFolder(scope, Ignores()), True)])
        while waiting:
            folder, is_read = waiting.popleft()
            if why := self._refusal(folder.path):
                self._skip(folder.path, why)
                continue
            try:
                items = folder.read()
            except OSError:
                self._skip(folder.path, Why.UNREADABLE)
                continue
            if why := self._refusal_of(folder.names, is_scope=folder.path == scope):
                self._skip(folder.path, why)
                continue
            self._room -= len(items)
            is_read = is_read and not self._is_heavy_news(folder)
            for item in items:
                if self._look_at_item(item, folder, status.st_dev, is_read=is_read):
                    waiting.append((folder.below(item), is_read))

    def _look_at_item(
        self, item: "os.DirEntry[bytes]", folder: WalkFolder[bytes], device: int, *, is_read: bool
    ) -> bool:
        """Take in one name; return whether it is a folder to look into."""
        if self._stop.is_set():
            raise ScanCancelled
        try:
            status = item.stat(follow_symlinks=False)
        except OSError:
            return False  # it went away meanwhile
        self._add(item.path, status, is_read=is_read)
        if not item.is_dir(follow_symlinks=False):
            return False
        why = Why.MOUNT if status.st_dev != device else self._why_skipped(item, status, folder)
        if why:
            self._skip(item.path, why)
        return not why

    def _why_skipped(self, item: "os.DirEntry[bytes]", status: os.stat_result, folder: WalkFolder[bytes]) -> str:
        earlier = self._like.entries.get(item.path) if self._like else None
        if earlier is not None and earlier.kind is EntryKind.SKIPPED:
            return earlier.why_not
        if item.path == self._home:
            return Why.HOME
        if earlier is not None and earlier.kind is EntryKind.FOLDER:
            return ""
        if item.name == GIT:
            return Why.GIT
        if item.name in CACHES:
            return Why.CACHE
        if self._like is not None:
            moved = self._skipped_inodes.get(status.st_ino)
            return moved.why_not if moved and moved.mtime_ns == status.st_mtime_ns else ""
        is_ignored = item.name in HEAVY or folder.ignores.is_ignored(item.path, is_folder=True)
        return Why.IGNORED if is_ignored else ""

    def _is_heavy_news(self, folder: WalkFolder[bytes]) -> bool:
        """Return whether the step made this folder, and it would not have been looked into otherwise."""
        if self._like is None or folder.path in self._like.entries:
            return False
        is_heavy = os.path.basename(folder.path) in HEAVY or not folder.names.isdisjoint(HEAVY_MARKS)
        return is_heavy or folder.ignores.is_ignored(folder.path, is_folder=True)

    def _refusal(self, folder: bytes) -> str:
        if self._stop.is_set():
            raise ScanCancelled
        if folder == self._home:
            return Why.HOME
        return Why.TOO_SLOW if time.monotonic() > self._deadline else ""

    def _refusal_of(self, names: set[bytes], *, is_scope: bool) -> str:
        if len(names) > self._room:
            return Why.TOO_MANY
        is_heavy = self._like is None and not is_scope and not names.isdisjoint(HEAVY_MARKS)
        return Why.IGNORED if is_heavy else ""

    def _add(self, path: bytes, status: os.stat_result, *, is_read: bool = True) -> None:
        kind = kind_of(status.st_mode)
        if kind is EntryKind.LINK:
            try:
                self._entries[path] = entry_of(status, kind, os.readlink(path))
            except OSError as error:
                self._entries[path] = entry_of(status, EntryKind.OTHER, why_not=reason_of(error))
            return
        if kind is EntryKind.FILE and not is_read:
            self._entries[path] = entry_of(status, kind, why_not=Why.IGNORED)
            return
        if kind is EntryKind.FILE:
            known = self._cache.get(path)
            if known is not None and known.digest and known.is_untouched(status) and known.kind is EntryKind.FILE:
                self._entries[path] = known
                return
            self._unread.append((path, status))
        self._entries[path] = entry_of(status, kind)

    def _skip(self, folder: bytes, why: str) -> None:
        found = self._entries[folder]
        digest = head_of(folder) if why == Why.GIT else b""
        self._entries[folder] = msgspec.structs.replace(
            found, kind=EntryKind.SKIPPED, size=0, digest=digest, why_not=why, is_settled=False
        )

    def _read(self) -> None:
        """Keep the contents that are new, small ones first: so most files are kept if not all can be."""
        left = self._limits.new_bytes
        for path, status in sorted(self._unread, key=lambda one: one[1].st_size):
            if self._stop.is_set():
                raise ScanCancelled
            if status.st_size > self._limits.file_bytes:
                self._entries[path] = entry_of(status, EntryKind.FILE, why_not="too big to keep")
            elif time.monotonic() > self._deadline:
                self._entries[path] = entry_of(status, EntryKind.FILE, why_not=Why.TOO_SLOW)
            elif status.st_size > left:
                self._entries[path] = entry_of(status, EntryKind.FILE, why_not="too much to keep at once")
            else:
                left -= status.st_size
                self._entries[path] = read_file(path, status, self._blobs.keep_file)


class LastLooks:
    """The last scan of each workspace, in memory and on disk: what is untouched since isn't read again.

    Only with the store's lock held.
    """

    def __init__(self, folder: Path, blobs: Blobs) -> None:
        self._folder = folder
        self._blobs = blobs
        self._entries: dict[bytes, dict[bytes, ManifestEntry]] = {}
        self._generation = generation(folder)

    def at(self, root: bytes) -> dict[bytes, ManifestEntry]:
        """Return what was seen of a workspace, as far as its contents are kept."""
        now = generation(self._folder)
        if now != self._generation:  # a sweep, maybe by another process, may have removed contents
            self._entries.clear()
            self._generation = now
        if root not in self._entries:
            try:
                digest = bytes.fromhex(self._pointer(root).read_text())
                self._entries[root] = msgspec.msgpack.decode(self._blobs.read(digest), type=Manifest).entries
            except (OSError, ValueError, msgspec.DecodeError):
                self._entries[root] = {}
        return self._entries[root]

    def remember(self, root: bytes, entries: dict[bytes, ManifestEntry]) -> None:
        """Take in a newer look, for this process."""
        self._entries[root] = entries

    def write(self, root: bytes, digest: bytes) -> None:
        """Write down where the look is kept, for the next process.

        Raises:
            OSError: It can't be written.
        """
        replace_private(self._pointer(root), digest.hex().encode(), is_durable=False)

    def _pointer(self, root: bytes) -> Path:
        return self._folder / "roots" / digest_of(root).hex()[:32]
