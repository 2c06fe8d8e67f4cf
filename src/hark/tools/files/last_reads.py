"""The state that the file tools share: the version of each file that a session last saw, and a lock for changes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import anyio

from hark.disk.finish_in_thread import finish_in_thread
from hark.protocol.tool import CallContext

T = TypeVar("T")

MAX_VERSIONS = 20_000

FileVersion = tuple[int, int]
"""A file's modification time in nanoseconds, and its size in bytes."""


class LastReads:
    """The version of each file that each session last read or wrote. Drops the oldest entries when full."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, str], FileVersion] = {}
        self._one_change_at_a_time = anyio.Lock()

    async def run_change(self, change: Callable[[], T]) -> T:
        """Run a function that reads, checks and writes files in a thread, so that waiting for the disk is harmless.

        Changes run one at a time, so that calls can't interleave. Cancelling has no effect once the change has begun.
        """
        async with self._one_change_at_a_time:
            return await finish_in_thread(change)

    def record_version(self, context: CallContext, path: Path) -> None:
        """Record the file's current version."""
        key = _key(context, path)
        self._versions.pop(key, None)
        version = _current_version(path)
        if version is not None:
            self._versions[key] = version
        if len(self._versions) > MAX_VERSIONS:
            del self._versions[next(iter(self._versions))]

    def is_stale(self, context: CallContext, path: Path) -> bool:
        """Return whether the file has changed since this session last saw it. False if the session never saw it."""
        seen = self._versions.get(_key(context, path))
        return seen is not None and seen != _current_version(path)


def _key(context: CallContext, path: Path) -> tuple[str, str]:
    return context.session, os.path.realpath(path)


def _current_version(path: Path) -> FileVersion | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
