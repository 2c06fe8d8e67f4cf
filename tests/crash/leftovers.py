"""Finds live processes that inherited the cookie of a dead worker."""

import sys
from collections.abc import Collection
from pathlib import Path

from hark.processes.cookies import COOKIE_NAME, innermost_owner


def find_leftover_processes(dead: Collection[int]) -> list[str]:
    """Describe the live processes that the `dead` workers started. Return an empty list if not on Linux."""
    if sys.platform != "linux":
        return []
    found: list[str] = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit() and (owner := _read_owner_pid(directory)) in dead:
            command = _read(directory / "cmdline").replace(b"\0", b" ").decode(errors="replace")
            found.append(f"{command}(pid {directory.name}) of worker {owner}")
    return found


def _read_owner_pid(directory: Path) -> int | None:
    prefix = f"{COOKIE_NAME}=".encode()
    for entry in _read(directory / "environ").split(b"\0"):
        if entry.startswith(prefix):
            owner = innermost_owner(entry[len(prefix) :].decode(errors="replace"))
            return owner.pid if owner else None
    return None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
