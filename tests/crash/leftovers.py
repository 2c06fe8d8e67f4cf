"""The processes that still carry the cookie of a dead worker."""

import sys
from collections.abc import Collection
from pathlib import Path

from hark.processes.cookies import COOKIE_NAME, nearest_owner


def leftovers(dead: Collection[int]) -> list[str]:
    """Return what lives and was started by one of these processes; without /proc nothing can be found."""
    if sys.platform != "linux":
        return []
    found: list[str] = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit() and (owner := _owner(directory)) in dead:
            words = _read(directory / "cmdline").replace(b"\0", b" ").decode(errors="replace")
            found.append(f"{words}(pid {directory.name}) of worker {owner}")
    return found


def _owner(directory: Path) -> int | None:
    prefix = f"{COOKIE_NAME}=".encode()
    for entry in _read(directory / "environ").split(b"\0"):
        if entry.startswith(prefix):
            owner = nearest_owner(entry[len(prefix) :].decode(errors="replace"))
            return owner.pid if owner else None
    return None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
