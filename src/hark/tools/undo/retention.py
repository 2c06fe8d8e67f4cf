"""What is too old or too much to keep for undo, removed."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hark.disk.private_files import replace_private
from hark.tools.undo.blobs import Blobs
from hark.tools.undo.manifest import EntryKind, Manifest
from hark.tools.undo.steps import OPEN, UNDONE, WHOLE, Step

KEPT_SECONDS = 7 * 24 * 3600.0
KEPT_BYTES = 1_000_000_000
KEPT_STEPS = 20  # whatever their age and size
SWEEP_SECONDS = 1.0
REST_SECONDS = 3600.0


def generation(folder: Path) -> tuple[int, int]:
    """Return something that is different after a sweep, and in another store under the same name."""
    try:
        return _swept_ns(folder), (folder / "blobs").stat().st_ino
    except OSError:
        return 0, 0


def sweep(folder: Path, blobs: Blobs) -> None:
    """Remove old steps and the contents that nothing needs any more. Only with the store's lock held alone.

    Does nothing if it was done within the hour; stops after a second, and goes on another time.

    Raises:
        OSError: Something can't be removed.
    """
    if time.time_ns() - _swept_ns(folder) < REST_SECONDS * 1e9:
        return
    replace_private(folder / "swept", b"", is_durable=False)
    deadline = time.monotonic() + SWEEP_SECONDS
    _remove_halves(folder)
    needed: set[bytes] = set()
    size = 0
    for number, path in enumerate(_young(folder)):
        if time.monotonic() > deadline:
            return  # not all that is needed is known: no content may be removed
        if number >= KEPT_STEPS and size > KEPT_BYTES:
            path.unlink(missing_ok=True)
            continue
        try:
            news = _needs(path, blobs) - needed
        except (msgspec.DecodeError, ValueError, OSError):
            path.unlink(missing_ok=True)  # nobody can read it, so nothing can be undone with it
            continue
        size += sum(_size(blobs.path(digest)) for digest in news)
        needed |= news
    for path in _all_blobs(folder / "blobs"):
        if time.monotonic() > deadline:
            return
        if bytes.fromhex(path.parent.name + path.name) not in needed:
            path.unlink(missing_ok=True)


def _swept_ns(folder: Path) -> int:
    try:
        return (folder / "swept").stat().st_mtime_ns
    except OSError:
        return 0


def _young(folder: Path) -> list[Path]:
    """Remove steps that are undone or too old; return the others, newest first.

    The last looks at workspaces, which the next looks start from, are among them.
    """
    steps = [path for path in (folder / "steps").glob("*/*") if path.suffix in (OPEN, WHOLE, UNDONE)]
    times = {path: path.stat().st_mtime for path in (*steps, *(folder / "roots").glob("*"))}
    newest = sorted((path for path in times if path.suffix != UNDONE), key=times.__getitem__, reverse=True)
    oldest = time.time() - KEPT_SECONDS
    kept = [path for number, path in enumerate(newest) if number < KEPT_STEPS or times[path] > oldest]
    for path in times.keys() - set(kept):
        path.unlink(missing_ok=True)
    return kept


def _remove_halves(folder: Path) -> None:
    """Remove what a crash left half-written: nobody else writes while the lock is held alone."""
    for place in (folder, folder / "blobs", folder / "roots", *(folder / "steps").glob("*/")):
        for path in (*place.glob("new-*"), *place.glob(".*.*")):
            path.unlink(missing_ok=True)


def _needs(path: Path, blobs: Blobs) -> set[bytes]:
    if path.parent.name == "roots":
        manifests = (bytes.fromhex(path.read_text()),)
        needed: set[bytes] = set()
    else:
        step = msgspec.msgpack.decode(path.read_bytes(), type=Step)
        manifests = step.manifests if path.suffix == OPEN else ()
        needed = {c.before.digest for c in step.difference.changes if c.before and c.before.kind is EntryKind.FILE}
    for digest in manifests:
        manifest = msgspec.msgpack.decode(blobs.read(digest), type=Manifest)
        needed |= {digest, *(entry.digest for entry in manifest.entries.values() if entry.kind is EntryKind.FILE)}
    return needed


def _all_blobs(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as places:
        for place in places:
            if place.is_dir() and len(place.name) == 2:
                yield from Path(place.path).iterdir()


def _size(path: bytes) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - bytes
    except OSError:
        return 0
