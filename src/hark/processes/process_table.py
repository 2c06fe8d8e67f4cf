"""The process table, read from /proc, or from ps on systems without /proc."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct

MAX_COMMAND_CHARACTERS = 80
UNKNOWN_COMMAND = "a process"
# Indexes of fields in /proc/PID/stat, counted from the field after the command name.
_STATE, _PARENT, _GROUP, _SESSION, _STARTED, _MEMORY, _ENVIRONMENT_END = 0, 1, 2, 3, 19, 20, 48


class ProcessInfo(Struct, frozen=True):
    """A snapshot of a live process.

    `is_certain` is False during exec, when the environment isn't visible, so the process may not belong to the tree.
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


FindTree = Callable[[int, str, Mapping[int, ProcessInfo]], list[ProcessInfo]]
"""Returns the living processes of the tree that `root` started under a cookie. `known` are members found before.

Processes that only wait to be reaped don't count. Processes start and end during a scan, so only two empty scans in a
row prove that none is left.
"""


def find_tree_in_proc(root: int, cookie: str, known: Mapping[int, ProcessInfo]) -> list[ProcessInfo]:
    """Find a process tree in /proc by cookie, session and parent. No process with the cookie can escape."""
    cookie_bytes = cookie.encode()
    uncertain: list[ProcessInfo] = []

    def is_member(process: ProcessInfo) -> bool:
        if root in (process.pid, process.group, process.session) or _is_known(process, known):
            return True
        environment = read_environment(process.pid)
        if environment == b"" and not process.is_certain:
            uncertain.append(process)
        return environment is not None and cookie_bytes in environment

    return [with_command_line(process) for process in with_descendants(living_processes(), is_member)] + uncertain


def find_tree_with_ps(root: int, cookie: str, known: Mapping[int, ProcessInfo]) -> list[ProcessInfo]:
    """Find a process tree with ps, by process group and parent. A daemon can escape, because ps shows no cookies."""
    return with_descendants(
        _list_with_ps(), lambda process: root in (process.pid, process.group) or _is_known(process, known)
    )


def _list_with_ps() -> list[ProcessInfo]:
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat=,args="],  # noqa: S607 - ps is found on the PATH
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    lines = (line.split(None, 4) for line in listing.stdout.decode(errors="replace").splitlines())
    return [
        ProcessInfo(int(line[0]), int(line[1]), int(line[2]), 0, command=line[4][:MAX_COMMAND_CHARACTERS])
        for line in lines
        if len(line) == 5 and not line[3].startswith("Z")
    ]


HAS_PROC = sys.platform == "linux"


def list_processes() -> Iterable[ProcessInfo]:
    """Return all live processes, from /proc if there is one."""
    return living_processes() if HAS_PROC else _list_with_ps()


def _is_known(process: ProcessInfo, known: Mapping[int, ProcessInfo]) -> bool:
    """Return whether the process was found before. A reused pid differs in start time or process group."""
    before = known.get(process.pid)
    return (
        before is not None
        and before.started == process.started
        and (bool(process.started) or before.group == process.group)
    )


def with_descendants(processes: Iterable[ProcessInfo], is_member: Callable[[ProcessInfo], bool]) -> list[ProcessInfo]:
    """Return the processes that are members, with all their descendants."""
    members: dict[int, ProcessInfo] = {}
    others: list[ProcessInfo] = []
    for process in processes:
        if is_member(process):
            members[process.pid] = process
        else:
            others.append(process)
    while children := [process for process in others if process.parent in members and process.pid not in members]:
        members.update((process.pid, process) for process in children)
    return list(members.values())


def living_processes() -> Iterator[ProcessInfo]:
    """Yield all live processes in /proc except kernel threads. Yields nothing on systems without /proc."""
    for pid in _list_pids():
        fields = _read_stat(pid)
        # A process without memory is a kernel thread, a zombie or about to become one. It can't do anything any more.
        if len(fields) <= _ENVIRONMENT_END or fields[_MEMORY] == b"0":
            continue
        parent, group, session, started = (int(fields[index]) for index in (_PARENT, _GROUP, _SESSION, _STARTED))
        yield ProcessInfo(int(pid), parent, group, session, started, is_certain=fields[_ENVIRONMENT_END] != b"0")


def read_start_time(pid: int) -> int | None:
    """Return a live process's start time in clock ticks since boot, or None if it ended or there is no /proc."""
    fields = _read_stat(pid)
    return int(fields[_STARTED]) if fields and fields[_STATE] not in (b"Z", b"X") else None


def read_environment(pid: int) -> bytes | None:
    """Return a process's initial environment, or None if the process ended or belongs to another user."""
    return _read_proc_file(f"/proc/{pid}/environ")


def with_command_line(process: ProcessInfo) -> ProcessInfo:
    """Return the process with its command line filled in."""
    command_line = (
        (_read_proc_file(f"/proc/{process.pid}/cmdline") or b"").replace(b"\0", b" ").decode(errors="replace").strip()
    )
    return msgspec.structs.replace(
        process, command=command_line[:MAX_COMMAND_CHARACTERS] or UNKNOWN_COMMAND, is_certain=True
    )


def _list_pids() -> list[str]:
    try:
        # os.listdir is faster than Path.iterdir for hundreds of entries, and this blocks the event loop.
        return [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:
        return []


def _read_stat(pid: int | str) -> list[bytes]:
    """Return the fields of /proc/PID/stat, starting with the process state, or [] if the process has ended."""
    # The command name is the second field and may contain any character, even parentheses and blanks.
    return (_read_proc_file(f"/proc/{pid}/stat") or b"").rpartition(b")")[2].split()


def _read_proc_file(path: str) -> bytes | None:
    """Return the content of a file in /proc, or None if the file is gone or belongs to another user."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        content = piece = os.read(descriptor, 16384)
        while len(piece) >= 4096:  # a short read is the last one
            piece = os.read(descriptor, 16384)
            content += piece
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return content
