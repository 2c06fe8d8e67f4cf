"""What a session last saw of its files, so that an edit can tell that one was changed since."""

import os
from pathlib import Path

from hark.protocol.tool import CallContext

KEPT = 20_000

Version = tuple[int, int]
"""When a file was last changed, and its size."""


class LastReads:
    """The version of each file that each session last read or wrote; the oldest are forgotten."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, str], Version] = {}

    def note(self, context: CallContext, path: Path) -> None:
        """Remember the file as it is now."""
        key = _key(context, path)
        self._versions.pop(key, None)
        version = _version(path)
        if version is not None:
            self._versions[key] = version
        if len(self._versions) > KEPT:
            del self._versions[next(iter(self._versions))]

    def is_stale(self, context: CallContext, path: Path) -> bool:
        """Tell whether the file was changed since this session last saw it; False if it never did."""
        seen = self._versions.get(_key(context, path))
        return seen is not None and seen != _version(path)


def _key(context: CallContext, path: Path) -> tuple[str, str]:
    return context.session, os.path.realpath(path)


def _version(path: Path) -> Version | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
