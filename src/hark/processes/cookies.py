"""The marker variable (cookie) in the environment of a call's processes, and the cleanup of leftover processes."""

import hashlib
import os
import secrets
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import anyio
from msgspec import Struct

from hark.disk.line_file import append_line
from hark.processes.process_table import (
    ProcessInfo,
    living_processes,
    read_environment,
    read_start_time,
    with_command_line,
    with_descendants,
)
from hark.processes.tree import kill_all

COOKIE_NAME = "HARK_COOKIE"
SEPARATOR = ","
CLEANUP_SECONDS = 0.5


class ProcessOwner(Struct, frozen=True):
    """The Hark process that starts calls: a hash of its home, its pid, and its start time.

    Pid and start time together identify a process until the next boot. A pid alone may be reused.
    """

    home: str
    pid: int
    started: int

    def new_cookie(self) -> str:
        """Return a new, unique cookie for a call."""
        return f"{self.home}:{self.pid}-{self.started}:{secrets.token_hex(8)}"

    @property
    def is_alive(self) -> bool:
        """Whether this process, identified by pid and start time, is still running."""
        return read_start_time(self.pid) == self.started


def current_owner(home: Path | None = None) -> ProcessOwner:
    """Return this process as an owner. Without a home, a later cleanup can't find the processes it started."""
    pid = os.getpid()
    return ProcessOwner(_hash_home(home), pid, read_start_time(pid) or 0)


def with_cookie(environment: Mapping[str, str], cookie: str) -> dict[str, str]:
    """Return the environment with the cookie appended to any cookies already in it.

    If one Hark runs inside another, the outer one can still find the processes of the inner one.
    """
    outer_cookies = environment.get(COOKIE_NAME)
    return {**environment, COOKIE_NAME: f"{outer_cookies}{SEPARATOR}{cookie}" if outer_cookies else cookie}


def innermost_cookie(value: str) -> str:
    """Return the cookie of the innermost call from a value of HARK_COOKIE."""
    return value.rpartition(SEPARATOR)[2]


def innermost_owner(value: str) -> ProcessOwner | None:
    """Return the owner of a process with this value of HARK_COOKIE, or None if the value isn't valid."""
    try:
        home, owner, _ = innermost_cookie(value).split(":")
        pid, started = owner.split("-")
        return ProcessOwner(home, int(pid), int(started))
    except ValueError:
        return None


def _hash_home(home: Path | None) -> str:
    if home is None:
        return ""
    try:
        # Pids are only unique within a namespace, so a container that shares the home counts as a different home.
        namespace = Path("/proc/self/ns/pid").readlink().name
    except OSError:
        namespace = ""
    return hashlib.sha256(f"{home.resolve()}|{namespace}".encode()).hexdigest()[:16]


class DetachedProcesses:
    """The file that lists the cookies of detached processes, one per line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, cookie: str) -> None:
        """Append a cookie and sync it to disk.

        Raises:
            OSError: The file can't be written. The process must not be detached in that case.
        """
        append_line(self._path, cookie.encode())

    def read_cookies(self) -> frozenset[str]:
        """Return the cookies of all detached processes."""
        try:
            return frozenset(self._path.read_text().split())
        except FileNotFoundError:
            return frozenset()


async def kill_leftover_processes(owner: ProcessOwner, detached_cookies: Collection[str] = ()) -> list[ProcessInfo]:
    """Kill the processes of dead owners with the same home, and return them. Spares processes of live owners.

    Processes with one of the `detached_cookies` are spared too, because the user detached them. Finds nothing without
    /proc. Takes at most half a second; safe to cancel.
    """
    found_by_pid: dict[int, ProcessInfo] = {}

    def find_and_record() -> list[ProcessInfo]:
        found = _find_leftovers(owner, detached_cookies)
        found_by_pid.update((process.pid, process) for process in found)
        return found

    with anyio.move_on_after(CLEANUP_SECONDS):
        await kill_all(find_and_record)
    return list(found_by_pid.values())


def _find_leftovers(owner: ProcessOwner, detached_cookies: Collection[str]) -> list[ProcessInfo]:
    """Return the running processes of dead owners with the same home, without this process and its ancestors."""
    processes = {process.pid: process for process in living_processes()}
    own_pids = set(_ancestor_pids(processes, os.getpid()))
    others = [process for process in processes.values() if process.pid not in own_pids]
    cookies = {process.pid: innermost_cookie(read_cookies(process.pid)) for process in others}

    def is_orphan(process: ProcessInfo) -> bool:
        cookie = cookies[process.pid]
        nearest = innermost_owner(cookie)
        return (
            nearest is not None
            and nearest.home == owner.home
            and cookie not in detached_cookies
            and not nearest.is_alive
        )

    # A process with a cookie is decided by that cookie. One without, because it cleared its environment, follows its
    # parent.
    candidates = [process for process in others if not cookies[process.pid] or is_orphan(process)]
    return [with_command_line(process) for process in with_descendants(candidates, is_orphan)]


def read_cookies(pid: int) -> str:
    """Return a process's value of HARK_COOKIE, outermost cookie first, or ""."""
    prefix = f"{COOKIE_NAME}=".encode()
    values = [entry[len(prefix) :] for entry in (read_environment(pid) or b"").split(b"\0") if entry.startswith(prefix)]
    return values[0].decode(errors="replace") if values else ""


def _ancestor_pids(processes: Mapping[int, ProcessInfo], pid: int) -> Iterator[int]:
    while pid in processes:
        yield pid
        pid = processes[pid].parent
