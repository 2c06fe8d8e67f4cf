"""Removes undo data that is too old or takes too much space."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hark.disk.private_files import replace_file
from hark.tools.undo.blobs import BlobStore
from hark.tools.undo.manifest import EntryKind, Manifest
from hark.tools.undo.steps import FINISHED, OPEN, UNDONE, Step

MAX_AGE_SECONDS = 7 * 24 * 3600.0
MAX_TOTAL_BYTES = 1_000_000_000
MIN_KEPT_STEPS = 20  # kept whatever their age and size
MAX_CLEANUP_SECONDS = 1.0
CLEANUP_INTERVAL_SECONDS = 3600.0


def store_generation(folder: Path) -> tuple[int, int]:
    """Return a value that changes with each cleanup, and that differs for another store at the same path."""
    try:
        return _last_cleanup_ns(folder), (folder / "blobs").stat().st_ino
    except OSError:
        return 0, 0


def clean_up(folder: Path, blobs: BlobStore) -> None:
    """Remove old steps and the blobs that are no longer needed. The caller must hold the store's exclusive lock.

    Does nothing if the last cleanup was less than an hour ago. Stops after a second; the next cleanup continues.

    Raises:
        OSError: A file can't be removed.
    """
    if time.time_ns() - _last_cleanup_ns(folder) < CLEANUP_INTERVAL_SECONDS * 1e9:
        return
    replace_file(folder / "swept", b"", is_durable=False)
    deadline = time.monotonic() + MAX_CLEANUP_SECONDS
    _remove_partial_files(folder)
    needed: set[bytes] = set()
    size = 0
    for number, path in enumerate(_retained_steps(folder)):
        if time.monotonic() > deadline:
            return  # not all needed blobs are known, so none may be removed
        if number >= MIN_KEPT_STEPS and size > MAX_TOTAL_BYTES:
            path.unlink(missing_ok=True)
            continue
        try:
            newly_needed = _needed_blobs(path, blobs) - needed
        except (msgspec.DecodeError, ValueError, OSError):
            if path.parent.name == "roots":  # a damaged step stays, because the next undo must report it
                path.unlink(missing_ok=True)
            continue
        size += sum(_file_size(blobs.path(digest)) for digest in newly_needed)
        needed |= newly_needed
    for path in _all_blobs(folder / "blobs"):
        if time.monotonic() > deadline:
            return
        if bytes.fromhex(path.parent.name + path.name) not in needed:
            path.unlink(missing_ok=True)


def _last_cleanup_ns(folder: Path) -> int:
    try:
        return (folder / "swept").stat().st_mtime_ns
    except OSError:
        return 0


def _retained_steps(folder: Path) -> list[Path]:
    """Remove steps that are undone or too old. Return the others, newest first.

    The result includes the last scans of workspaces, from which the next scans start.
    """
    steps = [path for path in (folder / "steps").glob("*/*") if path.suffix in (OPEN, FINISHED, UNDONE)]
    times = {path: path.stat().st_mtime for path in (*steps, *(folder / "roots").glob("*"))}
    newest = sorted((path for path in times if path.suffix != UNDONE), key=times.__getitem__, reverse=True)
    oldest = time.time() - MAX_AGE_SECONDS
    retained = [path for number, path in enumerate(newest) if number < MIN_KEPT_STEPS or times[path] > oldest]
    for path in times.keys() - set(retained):
        path.unlink(missing_ok=True)
    return retained


def _remove_partial_files(folder: Path) -> None:
    """Remove half-written files left by a crash. No other process writes while the exclusive lock is held."""
    for parent in (folder, folder / "blobs", folder / "roots", *(folder / "steps").glob("*/")):
        for path in (*parent.glob("new-*"), *parent.glob(".*.*")):
            path.unlink(missing_ok=True)


def _needed_blobs(path: Path, blobs: BlobStore) -> set[bytes]:
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
    with os.scandir(folder) as prefixes:
        for prefix in prefixes:
            if prefix.is_dir() and len(prefix.name) == 2:
                yield from Path(prefix.path).iterdir()


def _file_size(path: bytes) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - bytes
    except OSError:
        return 0
