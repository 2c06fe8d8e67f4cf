"""Whether a program that says nothing yet is at work: one that starts up burns time, one that hangs does not."""

from pathlib import Path

_PROC = Path("/proc")


class SignsOfLife:
    """Looks at the processor time of all processes of one session, from look to look."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._ticks = 0

    def has_moved(self) -> bool:
        """Tell whether it worked since the last look; where that can't be seen, it did not."""
        ticks = sum(_ticks(path, self._session) for path in _PROC.glob("[0-9]*/stat"))
        has_moved, self._ticks = ticks > self._ticks, ticks
        return has_moved


def _ticks(path: Path, session: int) -> int:
    """Return the clock ticks that a process has used, its ended children's too; 0 for one of another session."""
    try:
        fields = path.read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15])) if int(fields[3]) == session else 0
