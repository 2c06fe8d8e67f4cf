"""The table of processes: the one reader of /proc, and of ps where there is no /proc."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct

COMMAND_CHARACTERS = 80
NAMELESS = "a process"
# Where /proc/PID/stat has these, counted from behind the command's name.
_STATE, _PARENT, _GROUP, _SESSION, _TICKS, _STARTED, _MEMORY, _ENVIRONMENT_END = 0, 1, 2, 3, 11, 19, 20, 48
_BUSY = (b"R", b"D")  # running or ready to, or waiting for a disk


class Seen(Struct, frozen=True):
    """A living process, as it was seen.

    One that is just becoming another program shows no environment: it may be one of ours, and is not `is_certain`.
    """

    pid: int
    parent: int
    group: int
    session: int
    started: int = 0
    command: str = ""
    is_certain: bool = True

    def __str__(self) -> str:
        return f"{self.command} (pid {self.pid})"


FindTree = Callable[[int, str, Mapping[int, Seen]], list[Seen]]
"""Returns the living processes of the tree that a root started under a cookie, some of which were seen before.

What has ended and only waits to be reaped is not seen. Looking takes a moment in which processes come and go: only two
looks in a row that see nothing are proof.
"""


def find_by_proc(root: int, cookie: str, known: Mapping[int, Seen]) -> list[Seen]:
    """Find a tree by cookie, session and descent in /proc: nothing that inherited the cookie escapes."""
    needle = cookie.encode()
    doubtful: list[Seen] = []

    def is_member(seen: Seen) -> bool:
        if root in (seen.pid, seen.group, seen.session) or _is_known(seen, known):
            return True
        environment = environment_of(seen.pid)
        if environment == b"" and not seen.is_certain:
            doubtful.append(seen)
        return environment is not None and needle in environment

    return [named(seen) for seen in with_descendants(living_processes(), is_member)] + doubtful


def find_by_ps(root: int, cookie: str, known: Mapping[int, Seen]) -> list[Seen]:
    """Find a tree by group and descent with ps, which shows no cookies: a daemon can escape."""
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat=,args="],  # noqa: S607 - ps is where the system has it
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    lines = (line.split(None, 4) for line in listing.stdout.decode(errors="replace").splitlines())
    processes = [
        Seen(int(line[0]), int(line[1]), int(line[2]), 0, command=line[4][:COMMAND_CHARACTERS])
        for line in lines
        if len(line) == 5 and not line[3].startswith("Z")
    ]
    return with_descendants(processes, lambda seen: root in (seen.pid, seen.group) or _is_known(seen, known))


HAS_PROC = sys.platform == "linux"


def _is_known(seen: Seen, known: Mapping[int, Seen]) -> bool:
    """A pid may be another's by now; then it began at another time, or at least in another group."""
    before = known.get(seen.pid)
    return before is not None and before.started == seen.started and (bool(seen.started) or before.group == seen.group)


def with_descendants(processes: Iterable[Seen], is_member: Callable[[Seen], bool]) -> list[Seen]:
    """Return the members among these processes, with all that descend from them."""
    members: dict[int, Seen] = {}
    others: list[Seen] = []
    for seen in processes:
        if is_member(seen):
            members[seen.pid] = seen
        else:
            others.append(seen)
    while children := [seen for seen in others if seen.parent in members and seen.pid not in members]:
        members.update((seen.pid, seen) for seen in children)
    return list(members.values())


def living_processes() -> Iterator[Seen]:
    """Yield the processes of /proc, without kernel threads and zombies; none where there is no /proc."""
    for pid in _pids():
        fields = _stat(pid)
        # Without memory it is a kernel thread, a zombie or about to be one: none of these can do anything any more.
        if len(fields) <= _ENVIRONMENT_END or fields[_MEMORY] == b"0":
            continue
        parent, group, session, started = (int(fields[place]) for place in (_PARENT, _GROUP, _SESSION, _STARTED))
        yield Seen(int(pid), parent, group, session, started, is_certain=fields[_ENVIRONMENT_END] != b"0")


def start_time(pid: int) -> int | None:
    """Return when a living process started, in clock ticks from boot; None if it ended or /proc is missing."""
    fields = _stat(pid)
    return int(fields[_STARTED]) if fields and fields[_STATE] not in (b"Z", b"X") else None


def environment_of(pid: int) -> bytes | None:
    """Return the environment that a process was started with; None if it is gone, or another user's."""
    return _read(f"/proc/{pid}/environ")


def named(seen: Seen) -> Seen:
    """Return a process with its command line."""
    words = (_read(f"/proc/{seen.pid}/cmdline") or b"").replace(b"\0", b" ").decode(errors="replace").strip()
    return msgspec.structs.replace(seen, command=words[:COMMAND_CHARACTERS] or NAMELESS, is_certain=True)


class ProcessActivity:
    """Compares the processor time of all processes of one session from call to call.

    On a busy machine a process may wait long for the processor or the disk: that counts as activity.
    """

    def __init__(self, session: int) -> None:
        self.session = session
        self._ticks = 0

    def has_progressed(self) -> bool:
        """Return whether they worked since the last call; False where there is no /proc."""
        session = str(self.session).encode()
        stats = [fields for fields in map(_stat, _pids()) if fields and fields[_SESSION] == session]
        # Of the processes and of their ended children, in user and in kernel mode.
        ticks = sum(int(tick) for fields in stats for tick in fields[_TICKS : _TICKS + 4])
        has_progressed, self._ticks = ticks > self._ticks, ticks
        return has_progressed or any(fields[_STATE] in _BUSY for fields in stats)


def _pids() -> list[str]:
    try:
        # Not Path.iterdir: there are hundreds of entries, and the event loop waits.
        return [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:
        return []


def _stat(pid: int | str) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the process's state on; none if it is gone."""
    # The command's name comes second and may hold anything, parentheses and blanks too.
    return (_read(f"/proc/{pid}/stat") or b"").rpartition(b")")[2].split()


def _read(path: str) -> bytes | None:
    """Return a file of /proc; None when it is gone, or another's."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        whole = piece = os.read(descriptor, 16384)
        while len(piece) >= 4096:  # a short read is the last one
            piece = os.read(descriptor, 16384)
            whole += piece
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return whole
