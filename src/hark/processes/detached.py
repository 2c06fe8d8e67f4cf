"""The cookies of processes that a person let go: neither an exit nor a sweep ends them."""

import os
from pathlib import Path


class Detached:
    """A file with a cookie a line. Without a path nothing can be let go."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    def note(self, cookie: str) -> None:
        """Remember a cookie, durably.

        Raises:
            OSError: It can't be written; the process must not be let go then.
        """
        if self._path is None:
            raise FileNotFoundError("there is no home to note it in")
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, f"{cookie}\n".encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def cookies(self) -> frozenset[str]:
        """Return those that were noted."""
        try:
            return frozenset(self._path.read_text().split()) if self._path else frozenset()
        except FileNotFoundError:
            return frozenset()
