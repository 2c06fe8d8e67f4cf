"""One name on the disk, as an entry of a manifest."""
# Names of files are bytes here, and needn't be text.
# ruff: noqa: PTH116

import hashlib
import os
import time
from collections.abc import Callable

from hark.tools.undo.blobs import read_start
from hark.tools.undo.manifest import EntryKind, ManifestEntry

# A change within a tick of the file system's clock of the last look may not show in the times.
TICK_NS = 30_000_000
COARSE_TICK_NS = 2_100_000_000


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
