"""The state of a workspace at one moment, and the differences between two such states."""
# File names are bytes here, because they may not be valid text.
# ruff: noqa: PTH116, PTH120

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct, structs

from hark.disk.regular_files import read_start

# A change within one tick of the file system's clock after the last scan may not show in the timestamps.
TICK_NS = 30_000_000
COARSE_TICK_NS = 2_100_000_000


class EntryKind(StrEnum):
    """The kind of a file system entry. SKIPPED is a folder that exists but was not scanned."""

    FILE = "f"
    FOLDER = "d"
    LINK = "l"
    PIPE = "p"
    OTHER = "o"
    SKIPPED = "s"


KINDS = {
    stat.S_IFREG: EntryKind.FILE,
    stat.S_IFDIR: EntryKind.FOLDER,
    stat.S_IFLNK: EntryKind.LINK,
    stat.S_IFIFO: EntryKind.PIPE,
}


class SkipReason(StrEnum):
    """The reason why a folder was skipped. The values are stored in manifests; `skip_text` explains them to users."""

    GIT = "git keeps it"
    CACHE = "a cache that makes itself again"
    IGNORED = "ignored folders are not kept"
    MOUNT = "another file system"
    HOME = "Hark's own folder"
    TOO_MANY = "too many files to keep"
    TOO_SLOW = "there was no time to keep it"
    UNREADABLE = "it can't be read"


_SKIP_TEXTS = {
    SkipReason.GIT: "git manages it",
    SkipReason.CACHE: "it is a cache that is rebuilt automatically",
    SkipReason.IGNORED: "ignored folders are not saved",
    SkipReason.MOUNT: "it is on another file system",
    SkipReason.HOME: "it is Hark's own folder",
    SkipReason.TOO_MANY: "it has too many files",
    SkipReason.TOO_SLOW: "there was no time to save it",
}

_UNKNOWN_DIGEST = b"changed after the step"


def skip_text(reason: str) -> str:
    """Return a user-readable reason why a folder or file was not saved."""
    return next((text for known, text in _SKIP_TEXTS.items() if known == reason), reason)


class ManifestEntry(Struct, frozen=True, array_like=True):
    """A file system entry at the time of a scan.

    `digest` is a file's content digest, a link's target, or a digest of a repository's HEAD. `why_not` says why the
    content isn't stored. `is_settled`: the last change was so long before the scan that any later change must have
    a different timestamp.
    """

    kind: EntryKind
    mode: int
    uid: int
    gid: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    digest: bytes = b""
    why_not: str = ""
    is_settled: bool = False

    @property
    def is_restorable(self) -> bool:
        """Whether the entry can be restored from the blob store."""
        if self.kind is EntryKind.FILE:
            return not self.why_not
        return self.kind in (EntryKind.FOLDER, EntryKind.LINK, EntryKind.PIPE)

    def is_untouched(self, now: os.stat_result) -> bool:
        """Return whether the timestamps prove that the file is unchanged since the scan."""
        then = (self.inode, self.size, self.mtime_ns, self.ctime_ns)
        return self.is_settled and then == (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)

    def is_moved_to(self, other: "ManifestEntry") -> bool:
        """Return whether both entries are the same file. An equal inode is not enough, because inodes are reused."""
        if (self.kind, self.inode, self.mtime_ns) != (other.kind, other.inode, other.mtime_ns):
            return False
        return self.kind is not EntryKind.FILE or self.size == other.size


class Manifest(Struct, frozen=True):
    """The entries found at and below `scopes`. A path in a scanned folder without an entry did not exist."""

    scopes: tuple[bytes, ...] = ()
    entries: dict[bytes, ManifestEntry] = {}

    def merge_later(self, later: "Manifest") -> "Manifest":
        """Return both manifests merged. For a path that both scanned, this manifest takes precedence."""
        if not self.scopes:
            return later
        inside = tuple(scope + b"/" for scope in self.scopes)
        own = frozenset(self.scopes)
        new_entries = {p: e for p, e in later.entries.items() if p not in own and not p.startswith(inside)}
        return Manifest((*self.scopes, *later.scopes), {**new_entries, **self.entries})

    def covers(self, path: bytes) -> bool:
        """Return whether the path was scanned. A scanned path without an entry did not exist."""
        current: bytes = path
        while current not in self.scopes:
            folder: bytes = os.path.dirname(current)
            if folder == current:
                return False
            entry = self.entries.get(folder)
            if entry is not None:
                return entry.kind is not EntryKind.SKIPPED
            current = folder
        return True


class EntryChange(Struct, frozen=True, array_like=True):
    """A change to the entry at a path. `before` or `after` is None if nothing existed at the path."""

    path: bytes
    before: ManifestEntry | None
    after: ManifestEntry | None


class Difference(Struct, frozen=True):
    """A step's changes, with notes on its other effects (`news`) and on folders not scanned (`uncovered`)."""

    changes: tuple[EntryChange, ...] = ()
    news: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()


def is_same_entry(one: ManifestEntry | None, other: ManifestEntry | None) -> bool:
    """Return whether two entries are equal: by content if it is known, otherwise by size, time and inode."""
    if one is None or other is None:
        return one is other
    if one.kind is not other.kind:
        return False
    match one.kind:
        case EntryKind.FILE:
            return one.mode == other.mode and has_same_content(one, other)
        case EntryKind.FOLDER | EntryKind.PIPE:
            return one.mode == other.mode
        case EntryKind.LINK:
            return one.digest == other.digest
        case EntryKind.OTHER | EntryKind.SKIPPED:
            return one.inode == other.inode


def compare_manifests(before: Manifest, after: Manifest, root: bytes, ended_at_ns: int) -> Difference:
    """Return the changes between two manifests. `after` must come from a scan with `like` set to `before`.

    The state of a file that changed after `ended_at_ns` is recorded as unknown.
    """
    changes: list[EntryChange] = []
    for path in {**before.entries, **after.entries}:
        change = EntryChange(path, before.entries.get(path), after.entries.get(path))
        if not is_same_entry(change.before, change.after) and _was_scanned(change, before, after):
            changes.append(_without_later_state(change, ended_at_ns))
    return Difference(
        tuple(changes),
        tuple(_describe_moved_heads(before, after, root)),
        tuple(_describe_uncovered(before, after, root)),
    )


def _without_later_state(change: EntryChange, ended_at_ns: int) -> EntryChange:
    """Return the change. If a file was changed after the step's end, its state is one that no file has."""
    after = change.after
    if after is None or after.kind not in (EntryKind.FILE, EntryKind.LINK) or after.ctime_ns <= ended_at_ns:
        return change
    return structs.replace(change, after=structs.replace(after, digest=_UNKNOWN_DIGEST, is_settled=False))


def read_file_entry(
    path: bytes, status: os.stat_result, read_content: Callable[[bytes], tuple[bytes, os.stat_result]]
) -> ManifestEntry:
    """Return a regular file's entry with its content digest. If the file can't be read, `why_not` says why."""
    now_ns = time.time_ns()
    try:
        digest, status = read_content(path)
    except OSError as error:
        return make_entry(status, EntryKind.FILE, why_not=reason_not_stored(error))
    tick_ns = COARSE_TICK_NS if status.st_ctime_ns % 1_000_000_000 == 0 else TICK_NS
    return make_entry(status, EntryKind.FILE, digest, is_settled=status.st_ctime_ns + tick_ns < now_ns)


def make_entry(
    status: os.stat_result, kind: EntryKind, digest: bytes = b"", why_not: str = "", *, is_settled: bool = False
) -> ManifestEntry:
    """Return an entry with the values of a stat result."""
    return ManifestEntry(
        kind,
        status.st_mode & 0o7777,
        status.st_uid,
        status.st_gid,
        status.st_size if kind is EntryKind.FILE else 0,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
        digest,
        why_not,
        is_settled,
    )


def digest_of_head(repository: bytes) -> bytes:
    """Return a digest of the repository's HEAD, which changes with each commit and each checkout of a branch."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        digest.update(read_start(repository + b"/HEAD", 4096))
        digest.update(str(os.stat(repository + b"/logs/HEAD").st_size).encode())
    except OSError:
        pass  # a repository without commits has no log
    return digest.digest()


def reason_not_stored(error: OSError) -> str:
    """Return a user-readable reason why the content could not be stored."""
    return f"it can't be stored ({(error.strerror or str(error)).lower()})"


def format_path(path: bytes, root: bytes) -> str:
    """Format a path for display: relative to the root if it is inside, with unprintable characters escaped."""
    inside = path[len(root) + 1 :] if root and path.startswith(root + b"/") else path
    text = os.fsdecode(inside)
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def format_size(size: int) -> str:
    """Format a file size for display, such as `12 MB`."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.0f} {name}"
    return f"{size} bytes"


def kind_of(mode: int) -> EntryKind:
    """Return the kind of entry for the `st_mode` of a stat result."""
    return KINDS.get(stat.S_IFMT(mode), EntryKind.OTHER)


def has_same_content(one: ManifestEntry, other: ManifestEntry) -> bool:
    """Return whether two files have the same digest or, if a digest is unknown, the same size, time and inode."""
    if one.digest and other.digest:
        return one.digest == other.digest
    return (one.size, one.mtime_ns, one.inode) == (other.size, other.mtime_ns, other.inode)


def _was_scanned(change: EntryChange, before: Manifest, after: Manifest) -> bool:
    if change.before is None:
        return before.covers(change.path)
    if change.after is None:
        return after.covers(change.path)
    return change.before.kind is not EntryKind.FOLDER or change.after.kind is not EntryKind.SKIPPED


def _describe_moved_heads(before: Manifest, after: Manifest, root: bytes) -> Iterator[str]:
    for path, entry in _skipped_entries(before.entries):
        other = after.entries.get(path)
        if entry.why_not == SkipReason.GIT and other is not None and other.digest != entry.digest:
            repository = format_path(os.path.dirname(path), root)
            yield f"the step's git commits, checkouts and resets are not undone ({repository})"


def _describe_uncovered(before: Manifest, after: Manifest, root: bytes) -> Iterator[str]:
    """Yield one line for each reason why folders were not scanned."""
    names: dict[str, list[str]] = {}
    for path, entry in _skipped_entries(before.entries):
        if entry.why_not not in (SkipReason.GIT, SkipReason.CACHE, SkipReason.HOME):
            names.setdefault(entry.why_not, []).append(format_path(path, root))
    for path, entry in _skipped_entries(after.entries):
        earlier = before.entries.get(path)
        is_new = earlier is None or earlier.kind is not EntryKind.SKIPPED
        if is_new and entry.why_not in (SkipReason.TOO_MANY, SkipReason.TOO_SLOW, SkipReason.UNREADABLE):
            names.setdefault(entry.why_not, []).append(format_path(path, root))
    for why, folders in names.items():
        more = f" and {len(folders) - 3} more" if len(folders) > 3 else ""
        yield f"changes in {', '.join(folders[:3])}{more} are not covered: {skip_text(why)}"


def _skipped_entries(entries: Mapping[bytes, ManifestEntry]) -> Iterator[tuple[bytes, ManifestEntry]]:
    return ((path, entry) for path, entry in entries.items() if entry.kind is EntryKind.SKIPPED)
