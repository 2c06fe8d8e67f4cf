"""What a person has allowed for good: a file of lines that they may edit."""

import os
from pathlib import Path

import msgspec
from anyio import CapacityLimiter, to_thread

from hark.disk.cached_file import CachedFile
from hark.disk.private_files import open_private

HEADING = "# What was allowed for good, a tool or `TOOL:COMMAND` a line (JSON text). Remove a line to be asked again.\n"


class GrantsFile:
    """Grants in a file, read again when it changed, so that all processes of a home share them."""

    def __init__(self, path: Path) -> None:
        self._file = CachedFile(path, _grants)
        self._one_at_a_time = CapacityLimiter(1)

    @property
    def known(self) -> frozenset[str]:
        """The grants as the file has them now; a file that can't be read grants nothing."""
        try:
            return self._file.read()
        except (OSError, UnicodeDecodeError):
            return frozenset()

    async def remember(self, grant: str) -> None:
        """Store one more durably, in a thread, after those before it. Cancelling leaves it to finish on its own.

        Raises:
            OSError: It could not be stored.
        """
        if grant not in self.known:
            await to_thread.run_sync(self._append, grant, abandon_on_cancel=True, limiter=self._one_at_a_time)

    def _append(self, grant: str) -> None:
        with os.fdopen(open_private(self._file.path, os.O_WRONLY | os.O_APPEND), "ab") as file:
            line = _line(grant) if file.tell() else HEADING + _line(grant)
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())


def _line(grant: str) -> str:
    """Return a grant as a line: a command may have several lines of its own."""
    return msgspec.json.encode(grant).decode() + "\n"


def _grants(path: Path) -> frozenset[str]:
    grants: list[str] = []
    for line in path.read_text("utf-8").splitlines():
        if line.startswith('"'):
            try:
                grants.append(msgspec.json.decode(line, type=str))
            except msgspec.MsgspecError:
                continue  # a line that was cut or mistyped grants nothing
    return frozenset(grants)
