"""Finds the processes that a call started: by cookie, session and descent in /proc, or by descent alone with ps."""

import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol

import msgspec
from msgspec import Struct

from hark.processes.cookies import COOKIE_NAME, Owner, nearest_cookie, nearest_owner

COMMAND_CHARACTERS = 80
NAMELESS = "a process"
# Where /proc/PID/stat has these, counted from behind the command's name.
_STARTED, _MEMORY, _ENVIRONMENT_END = 19, 20, 48


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


class Finder(Protocol):
    """Sees processes. What has ended and only waits to be reaped is not seen.

    Looking takes a moment in which processes come and go: only two looks in a row that see nothing are proof.
    """

    def tree(self, root: int, cookie: str, known: Mapping[int, Seen]) -> list[Seen]:
        """Return what lives of the tree that `root` started; `known` was seen of it before."""
        ...

    def left_behind(self, owner: Owner, spared: Collection[str] = ()) -> list[Seen]:
        """Return what dead owners of the same home left running, but for what carries one of the `spared` cookies."""
        ...


def platform_finder() -> Finder:
    """Return the finder for this machine."""
    return ProcFinder() if sys.platform == "linux" else PsFinder()


class ProcFinder:
    """Looks into /proc: nothing that inherited the cookie escapes it."""

    def tree(self, root: int, cookie: str, known: Mapping[int, Seen]) -> list[Seen]:
        """Return what lives of the tree that `root` started; `known` was seen of it before."""
        needle = cookie.encode()
        doubtful: list[Seen] = []

        def is_member(seen: Seen) -> bool:
            if root in (seen.pid, seen.group, seen.session) or _is_known(seen, known):
                return True
            environment = _environment(seen.pid)
            if environment == b"" and not seen.is_certain:
                doubtful.append(seen)
            return environment is not None and needle in environment

        return [_named(seen) for seen in _with_descendants(_processes(), is_member)] + doubtful

    def left_behind(self, owner: Owner, spared: Collection[str] = ()) -> list[Seen]:
        """Return what dead owners of the same home left running; never this process or one that it comes from."""
        processes = {seen.pid: seen for seen in _processes()}
        own = set(_line(processes, os.getpid()))
        others = [seen for seen in processes.values() if seen.pid not in own]
        cookies = {seen.pid: _cookie(seen.pid) for seen in others}

        def is_orphan(seen: Seen) -> bool:
            return _is_orphan(cookies[seen.pid], owner, spared)

        # One that has a cookie speaks for itself; one that cleared its environment is what its parent is.
        silent = [seen for seen in others if not cookies[seen.pid] or is_orphan(seen)]
        return [_named(seen) for seen in _with_descendants(silent, is_orphan)]


class PsFinder:
    """Asks ps: sees a process group and its descendants, but no cookies, so a daemon can escape it."""

    def tree(self, root: int, cookie: str, known: Mapping[int, Seen]) -> list[Seen]:
        """Return what lives of the tree that `root` started; `known` was seen of it before."""
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
        return _with_descendants(processes, lambda seen: root in (seen.pid, seen.group) or _is_known(seen, known))

    def left_behind(self, owner: Owner, spared: Collection[str] = ()) -> list[Seen]:
        """Return nothing: without cookies there is no telling."""
        return []


def _is_known(seen: Seen, known: Mapping[int, Seen]) -> bool:
    """A pid may be another's by now; then it began at another time, or at least in another group."""
    before = known.get(seen.pid)
    return before is not None and before.started == seen.started and (bool(seen.started) or before.group == seen.group)


def _with_descendants(processes: Iterable[Seen], is_member: Callable[[Seen], bool]) -> list[Seen]:
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


def _processes() -> Iterator[Seen]:
    for name in os.listdir("/proc"):  # noqa: PTH208 - hundreds of entries while the event loop waits
        if name.isdigit() and (seen := _process(name)):
            yield seen


def _process(pid: str) -> Seen | None:
    # The command's name comes second and may hold anything, parentheses and blanks too.
    fields = (_read(f"/proc/{pid}/stat") or b"").rpartition(b")")[2].split()
    # Without memory it is a kernel thread, a zombie or about to be one: none of these can do anything any more.
    if len(fields) <= _ENVIRONMENT_END or fields[_MEMORY] == b"0":
        return None
    is_certain = fields[_ENVIRONMENT_END] != b"0"
    started = int(fields[_STARTED])
    return Seen(int(pid), int(fields[1]), int(fields[2]), int(fields[3]), started, is_certain=is_certain)


def _environment(pid: int) -> bytes | None:
    return _read(f"/proc/{pid}/environ")


def _cookie(pid: int) -> str:
    prefix = f"{COOKIE_NAME}=".encode()
    values = [entry[len(prefix) :] for entry in (_environment(pid) or b"").split(b"\0") if entry.startswith(prefix)]
    return nearest_cookie(values[0].decode(errors="replace")) if values else ""


def _is_orphan(cookie: str, owner: Owner, spared: Collection[str]) -> bool:
    nearest = nearest_owner(cookie)
    return nearest is not None and nearest.home == owner.home and cookie not in spared and not nearest.is_alive


def _line(processes: dict[int, Seen], pid: int) -> Iterator[int]:
    while pid in processes:
        yield pid
        pid = processes[pid].parent


def _named(seen: Seen) -> Seen:
    words = (_read(f"/proc/{seen.pid}/cmdline") or b"").replace(b"\0", b" ").decode(errors="replace").strip()
    return msgspec.structs.replace(seen, command=words[:COMMAND_CHARACTERS] or NAMELESS, is_certain=True)


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
