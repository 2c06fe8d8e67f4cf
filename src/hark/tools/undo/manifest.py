"""What a workspace was at one moment, and what changed from one moment to another."""
# Names of files are bytes here, and needn't be text.
# ruff: noqa: PTH116, PTH120

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from hark.disk.regular_files import read_start

# A change within a tick of the file system's clock of the last look may not show in the times.
TICK_NS = 30_000_000
COARSE_TICK_NS = 2_100_000_000


class EntryKind(StrEnum):
    """What is found under a name. SKIPPED is a folder that is there and wasn't looked into."""

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


class Why(StrEnum):
    """Why a folder was skipped; what a person is told."""

    GIT = "git keeps it"
    CACHE = "a cache that makes itself again"
    IGNORED = "ignored folders are not kept"
    MOUNT = "another file system"
    HOME = "Hark's own folder"
    TOO_MANY = "too many files to keep"
    TOO_SLOW = "there was no time to keep it"
    UNREADABLE = "it can't be read"


class ManifestEntry(Struct, frozen=True, array_like=True):
    """One name at one moment.

    `digest` is a file's content, a link's target, or where a repository's HEAD was. `why_not` tells why the content
    isn't kept. `is_settled`: the last change was long enough ago that the next one must show in the times.
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
    def is_kept(self) -> bool:
        """Whether it can be made again from here."""
        if self.kind is EntryKind.FILE:
            return not self.why_not
        return self.kind in (EntryKind.FOLDER, EntryKind.LINK, EntryKind.PIPE)

    def is_untouched(self, now: os.stat_result) -> bool:
        """Return whether the times tell that nothing was written since."""
        then = (self.inode, self.size, self.mtime_ns, self.ctime_ns)
        return self.is_settled and then == (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)

    def is_moved_to(self, other: "ManifestEntry") -> bool:
        """Return whether it is the very same thing: an inode alone may be another's by now."""
        if (self.kind, self.inode, self.mtime_ns) != (other.kind, other.inode, other.mtime_ns):
            return False
        return self.kind is not EntryKind.FILE or self.size == other.size


class Manifest(Struct, frozen=True):
    """All that was found at and below `scopes`. What lies there, in a folder of it, and isn't in it, wasn't there."""

    scopes: tuple[bytes, ...] = ()
    entries: dict[bytes, ManifestEntry] = {}

    def over(self, later: "Manifest") -> "Manifest":
        """Return both in one; where both looked, this one holds."""
        if not self.scopes:
            return later
        inside = tuple(scope + b"/" for scope in self.scopes)
        own = frozenset(self.scopes)
        news = {p: e for p, e in later.entries.items() if p not in own and not p.startswith(inside)}
        return Manifest((*self.scopes, *later.scopes), {**news, **self.entries})

    def knows(self, path: bytes) -> bool:
        """Return whether it was looked at: then its absence says that nothing was there."""
        place: bytes = path
        while place not in self.scopes:
            folder: bytes = os.path.dirname(place)
            if folder == place:
                return False
            entry = self.entries.get(folder)
            if entry is not None:
                return entry.kind is not EntryKind.SKIPPED
            place = folder
        return True


class EntryChange(Struct, frozen=True, array_like=True):
    """One name that became another thing; None: nothing was there."""

    path: bytes
    before: ManifestEntry | None
    after: ManifestEntry | None


class Difference(Struct, frozen=True):
    """What a step changed; what else is known to have happened; which folders it may have changed unseen."""

    changes: tuple[EntryChange, ...] = ()
    news: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()


def is_same(one: ManifestEntry | None, other: ManifestEntry | None) -> bool:
    """Return whether nobody could tell the two apart: by content where it is known, else by size, time and inode."""
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


def difference(before: Manifest, after: Manifest, root: bytes) -> Difference:
    """Return what changed between two manifests, of which the second was made like the first."""
    changes: list[EntryChange] = []
    for path in {**before.entries, **after.entries}:
        change = EntryChange(path, before.entries.get(path), after.entries.get(path))
        if not is_same(change.before, change.after) and _is_known(change, before, after):
            changes.append(change)
    return Difference(tuple(changes), tuple(_moved_heads(before, after, root)), tuple(_uncovered(before, after, root)))


def read_file(
    path: bytes, status: os.stat_result, read: Callable[[bytes], tuple[bytes, os.stat_result]]
) -> ManifestEntry:
    """Return the entry of a regular file, with its content; one that can't be read says why."""
    now_ns = time.time_ns()
    try:
        digest, status = read(path)
    except OSError as error:
        return entry_of(status, EntryKind.FILE, why_not=reason_of(error))
    tick_ns = COARSE_TICK_NS if status.st_ctime_ns % 1_000_000_000 == 0 else TICK_NS
    return entry_of(status, EntryKind.FILE, digest, is_settled=status.st_ctime_ns + tick_ns < now_ns)


def entry_of(
    status: os.stat_result, kind: EntryKind, digest: bytes = b"", why_not: str = "", *, is_settled: bool = False
) -> ManifestEntry:
    """Return an entry with what a stat tells."""
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


def head_of(repository: bytes) -> bytes:
    """Return something that changes when commits are made or another branch is checked out."""
    seen = hashlib.blake2b(digest_size=16)
    try:
        seen.update(read_start(repository + b"/HEAD", 4096))
        seen.update(str(os.stat(repository + b"/logs/HEAD").st_size).encode())
    except OSError:
        pass  # a repository with no commit yet has no log
    return seen.digest()


def reason_of(error: OSError) -> str:
    """Return why a content isn't kept."""
    return f"it can't be kept ({(error.strerror or str(error)).lower()})"


def show_path(path: bytes, root: bytes) -> str:
    """Return a path for people: within the root relative to it, and with nothing in it that isn't printable."""
    inside = path[len(root) + 1 :] if root and path.startswith(root + b"/") else path
    text = os.fsdecode(inside)
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def show_size(size: int) -> str:
    """Return a size for people."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.0f} {name}"
    return f"{size} bytes"


def kind_of(mode: int) -> EntryKind:
    """Return what the mode of a stat says."""
    return KINDS.get(stat.S_IFMT(mode), EntryKind.OTHER)


def has_same_content(one: ManifestEntry, other: ManifestEntry) -> bool:
    """Return whether two files hold the same, by what is known of them."""
    if one.digest and other.digest:
        return one.digest == other.digest
    return (one.size, one.mtime_ns, one.inode) == (other.size, other.mtime_ns, other.inode)


def _is_known(change: EntryChange, before: Manifest, after: Manifest) -> bool:
    if change.before is None:
        return before.knows(change.path)
    if change.after is None:
        return after.knows(change.path)
    return change.before.kind is not EntryKind.FOLDER or change.after.kind is not EntryKind.SKIPPED


def _moved_heads(before: Manifest, after: Manifest, root: bytes) -> Iterator[str]:
    for path, entry in _skipped(before.entries):
        other = after.entries.get(path)
        if entry.why_not == Why.GIT and other is not None and other.digest != entry.digest:
            place = show_path(os.path.dirname(path), root)
            yield f"git commits, checkouts and resets of the step stay ({place})"


def _uncovered(before: Manifest, after: Manifest, root: bytes) -> Iterator[str]:
    """Yield one line for each reason why folders weren't looked into."""
    names: dict[str, list[str]] = {}
    for path, entry in _skipped(before.entries):
        if entry.why_not not in (Why.GIT, Why.CACHE, Why.HOME):
            names.setdefault(entry.why_not, []).append(show_path(path, root))
    for path, entry in _skipped(after.entries):
        earlier = before.entries.get(path)
        is_news = earlier is None or earlier.kind is not EntryKind.SKIPPED
        if is_news and entry.why_not in (Why.TOO_MANY, Why.TOO_SLOW, Why.UNREADABLE):
            names.setdefault(entry.why_not, []).append(show_path(path, root))
    for why, folders in names.items():
        more = f" and {len(folders) - 3} more" if len(folders) > 3 else ""
        yield f"changes in {', '.join(folders[:3])}{more} are not covered: {why}"


def _skipped(entries: Mapping[bytes, ManifestEntry]) -> Iterator[tuple[bytes, ManifestEntry]]:
    return ((path, entry) for path, entry in entries.items() if entry.kind is EntryKind.SKIPPED)
