"""What a file says, read again only when the file has changed."""

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class CachedFile(Generic[T]):
    """Remembers what `load` made of a file, until its time or size is another."""

    def __init__(self, path: Path, load: Callable[[Path], T]) -> None:
        self.path = path
        self._load = load
        self._known: tuple[tuple[int, int], T] | None = None

    def read(self) -> T:
        """Return what the file says now. What `load` raises comes through, and the next call reads again.

        Raises:
            OSError: It is not there, or can't be read.
        """
        status = self.path.stat()
        stamp = status.st_mtime_ns, status.st_size
        if self._known is None or self._known[0] != stamp:
            self._known = None
            self._known = stamp, self._load(self.path)
        return self._known[1]

    def forget(self) -> None:
        """Read again the next time, whatever the file's time and size say."""
        self._known = None
