"""The cookie that a call's processes carry in their environment, so that none of them can hide."""

import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

COOKIE_NAME = "HARK_COOKIE"
SEPARATOR = ","


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


def start_time(pid: int) -> int | None:
    """Return when a living process started, in clock ticks from boot; None if it ended or /proc is missing."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The command's name comes second and may hold anything, blanks and parentheses too; the state and the time are
    # behind it. A zombie is a process that ended.
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def _home_hash(home: Path | None) -> str:
    if home is None:
        return ""
    try:
        # Pids mean something within their namespace only: a container that shares the home is another home.
        namespace = Path("/proc/self/ns/pid").readlink().name
    except OSError:
        namespace = ""
    return hashlib.sha256(f"{home.resolve()}|{namespace}".encode()).hexdigest()[:16]
