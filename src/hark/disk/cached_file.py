"""A cache for a file's parsed content, reloaded only when the file has changed."""

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class CachedFile(Generic[T]):
    """Caches the result of `load` for a file until the file's modification time or size changes."""

    def __init__(self, path: Path, load: Callable[[Path], T]) -> None:
        self.path = path
        self._load = load
        self._cached: tuple[tuple[int, int], T] | None = None

    def read(self) -> T:
        """Return the loaded content of the file. Errors from `load` propagate and are not cached.

        Raises:
            OSError: The file doesn't exist or can't be read.
        """
        status = self.path.stat()
        stamp = status.st_mtime_ns, status.st_size
        if self._cached is None or self._cached[0] != stamp:
            self._cached = None
            self._cached = stamp, self._load(self.path)
        return self._cached[1]

    def invalidate(self) -> None:
        """Reload the file on the next read, even if its modification time and size are unchanged."""
        self._cached = None
