"""The cookie that a call's processes carry in their environment, and the sweep that finds them by it."""

import hashlib
import os
import secrets
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import anyio
from msgspec import Struct

from hark.disk.private_files import append_private
from hark.processes.process_table import Seen, environment_of, living_processes, named, start_time, with_descendants
from hark.processes.tree import kill_all

COOKIE_NAME = "HARK_COOKIE"
SEPARATOR = ","
SWEEP_SECONDS = 0.5


class Owner(Struct, frozen=True):
    """The process that starts calls: its home (as a hash), its pid and when it started.

    Pid and start time together name one process until the next boot: a pid alone may be another's by now.
    """

    home: str
    pid: int
    started: int

    def new_cookie(self) -> str:
        """Return a cookie that no other call has."""
        return f"{self.home}:{self.pid}-{self.started}:{secrets.token_hex(8)}"

    @property
    def is_alive(self) -> bool:
        """Whether this very process still runs."""
        return start_time(self.pid) == self.started


def this_process(home: Path | None = None) -> Owner:
    """Return this process as an owner; without a home, a sweep will not know its processes."""
    pid = os.getpid()
    return Owner(_home_hash(home), pid, start_time(pid) or 0)


def with_cookie(environment: Mapping[str, str], cookie: str) -> dict[str, str]:
    """Return the environment with the cookie in it, behind those that are there already.

    A Hark that another Hark started must not hide its processes from the outer one.
    """
    outer = environment.get(COOKIE_NAME)
    return {**environment, COOKIE_NAME: f"{outer}{SEPARATOR}{cookie}" if outer else cookie}


def nearest_cookie(value: str) -> str:
    """Return the cookie of the innermost call, from a value of HARK_COOKIE."""
    return value.rpartition(SEPARATOR)[2]


def nearest_owner(value: str) -> Owner | None:
    """Return who started the process that has this value of HARK_COOKIE; None if it isn't one of ours."""
    try:
        home, owner, _ = nearest_cookie(value).split(":")
        pid, started = owner.split("-")
        return Owner(home, int(pid), int(started))
    except ValueError:
        return None


def _home_hash(home: Path | None) -> str:
    if home is None:
        return ""
    try:
        # Pids mean something within their namespace only: a container that shares the home is another home.
        namespace = Path("/proc/self/ns/pid").readlink().name
    except OSError:
        namespace = ""
    return hashlib.sha256(f"{home.resolve()}|{namespace}".encode()).hexdigest()[:16]


class Detached:
    """A file with a cookie a line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, cookie: str) -> None:
        """Remember a cookie, durably.

        Raises:
            OSError: It can't be written; the process must not be let go then.
        """
        append_private(self._path, f"{cookie}\n".encode())

    def cookies(self) -> frozenset[str]:
        """Return those that were noted."""
        try:
            return frozenset(self._path.read_text().split())
        except FileNotFoundError:
            return frozenset()


async def sweep(owner: Owner, spared: Collection[str] = ()) -> list[Seen]:
    """End the processes whose owner had the same home and is dead; return them. Those of a living owner stay.

    So do those with one of the `spared` cookies: a person let them go, see Detached.
    Without /proc nothing is found. Takes at most half a second; safe to cancel.
    """
    met: dict[int, Seen] = {}

    def look() -> list[Seen]:
        found = _left_behind(owner, spared)
        met.update((seen.pid, seen) for seen in found)
        return found

    with anyio.move_on_after(SWEEP_SECONDS):
        await kill_all(look)
    return list(met.values())


def _left_behind(owner: Owner, spared: Collection[str]) -> list[Seen]:
    """Return what dead owners of the same home left running; never this process or one that it comes from."""
    processes = {seen.pid: seen for seen in living_processes()}
    own = set(_ancestors(processes, os.getpid()))
    others = [seen for seen in processes.values() if seen.pid not in own]
    cookies = {seen.pid: _cookie(seen.pid) for seen in others}

    def is_orphan(seen: Seen) -> bool:
        cookie = cookies[seen.pid]
        nearest = nearest_owner(cookie)
        return nearest is not None and nearest.home == owner.home and cookie not in spared and not nearest.is_alive

    # One that has a cookie speaks for itself; one that cleared its environment is what its parent is.
    silent = [seen for seen in others if not cookies[seen.pid] or is_orphan(seen)]
    return [named(seen) for seen in with_descendants(silent, is_orphan)]


def _cookie(pid: int) -> str:
    prefix = f"{COOKIE_NAME}=".encode()
    values = [entry[len(prefix) :] for entry in (environment_of(pid) or b"").split(b"\0") if entry.startswith(prefix)]
    return nearest_cookie(values[0].decode(errors="replace")) if values else ""


def _ancestors(processes: Mapping[int, Seen], pid: int) -> Iterator[int]:
    while pid in processes:
        yield pid
        pid = processes[pid].parent
