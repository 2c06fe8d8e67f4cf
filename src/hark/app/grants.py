"""Saved approvals: a file with a line per grant, which the user may edit."""

from pathlib import Path

import msgspec
from anyio import CapacityLimiter, to_thread

from hark.disk.cached_file import CachedFile
from hark.disk.line_file import append_line

HEADING = "# Always allowed: one tool or `TOOL:COMMAND` per line (JSON text). Delete a line to be asked again.\n"


class GrantsFile:
    """Grants in a file. All processes of a home share the file and reread it when it changes."""

    def __init__(self, path: Path) -> None:
        self._file = CachedFile(path, _read_grants)
        self._one_at_a_time = CapacityLimiter(1)

    @property
    def all(self) -> frozenset[str]:
        """The grants currently in the file, or an empty set if the file can't be read."""
        try:
            return self._file.read()
        except (OSError, UnicodeDecodeError):
            return frozenset()

    async def add(self, grant: str) -> None:
        """Durably add a grant. A thread writes one grant at a time, and cancelling doesn't stop the write.

        Raises:
            OSError: The grant could not be stored.
        """
        if grant not in self.all:
            await to_thread.run_sync(self._append, grant, abandon_on_cancel=True, limiter=self._one_at_a_time)

    def _append(self, grant: str) -> None:
        # As JSON text, because a command may span several lines.
        append_line(self._file.path, msgspec.json.encode(grant), HEADING.encode())


def _read_grants(path: Path) -> frozenset[str]:
    grants: list[str] = []
    for line in path.read_text("utf-8").splitlines():
        if line.startswith('"'):
            try:
                grants.append(msgspec.json.decode(line, type=str))
            except msgspec.MsgspecError:
                continue  # a truncated or mistyped line grants nothing
    return frozenset(grants)
