"""Whether a program that says nothing yet is at work: one that starts up burns time, one that hangs only waits."""

from pathlib import Path

_PROC = Path("/proc")
_AT_IT = (b"R", b"D")  # it runs or would, it waits for a disk


class SignsOfLife:
    """Looks at the processor time of all processes of one session, from look to look.

    On a busy machine one may have to wait for the processor or the disk for long: that, too, is being at work.
    """

    def __init__(self, session: int) -> None:
        self._session = session
        self._ticks = 0

    def has_moved(self) -> bool:
        """Tell whether it worked since the last look; where that can't be seen, it did not."""
        looks = [_look(path, self._session) for path in _PROC.glob("[0-9]*/stat")]
        ticks = sum(ticks for ticks, _ in looks)
        has_moved, self._ticks = ticks > self._ticks, ticks
        return has_moved or any(is_at_it for _, is_at_it in looks)


def _look(path: Path, session: int) -> tuple[int, bool]:
    """Return the clock ticks that a process has used, its ended children's too, and whether it wants to run on.

    One of another session has used none.
    """
    try:
        fields = path.read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0, False
    if int(fields[3]) != session:
        return 0, False
    return sum(map(int, fields[11:15])), fields[0] in _AT_IT
