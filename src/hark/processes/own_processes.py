"""Kills every process that this Hark process started, synchronously, right before it exits."""

import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from hark.processes.cookies import SEPARATOR, DetachedProcesses, current_owner, read_cookies
from hark.processes.launcher import adopt_orphans
from hark.processes.process_table import ProcessInfo, list_processes, read_environment, with_descendants
from hark.processes.tree import SCAN_SECONDS, freeze_and_kill

KILL_SECONDS = 0.3


class OwnProcesses:
    """The descendants of this process, and all processes with one of its cookies, except the detached ones.

    Works in signal handlers: nothing is imported, awaited or locked.
    """

    def __init__(self, home: Path) -> None:
        owner = current_owner()
        self._pid = owner.pid
        self._mark = f":{owner.pid}-{owner.started}:"
        self._detached = DetachedProcesses(home / "detached")

    def adopt_orphans(self) -> None:
        """Become the parent of orphaned descendants from now on (Linux only). They are not reaped until `kill`."""
        adopt_orphans()

    def find(self) -> list[ProcessInfo]:
        """Return the live processes. Some are uncertain, because they are about to start another program."""
        detached_cookies = frozenset[str]()
        with suppress(OSError, ValueError):  # the file can't be read, so nothing is spared
            detached_cookies = self._detached.read_cookies()
        processes: list[ProcessInfo] = []
        uncertain: list[ProcessInfo] = []
        marked_pids: set[int] = set()
        for process in list_processes():
            cookies = read_cookies(process.pid)
            if process.pid == self._pid or not detached_cookies.isdisjoint(cookies.split(SEPARATOR)):
                continue
            processes.append(process)
            if self._mark in cookies:
                marked_pids.add(process.pid)
            elif not process.is_certain and read_environment(process.pid) == b"":
                uncertain.append(process)
        own = with_descendants(processes, lambda process: process.parent == self._pid or process.pid in marked_pids)
        own_pids = {process.pid for process in own}
        return [msgspec.structs.replace(process, is_certain=True) for process in own] + [
            process for process in uncertain if process.pid not in own_pids
        ]

    def kill(self) -> None:
        """Kill the processes and wait until they are gone, but at most 300 ms."""
        self.adopt_orphans()
        deadline = time.monotonic() + KILL_SECONDS
        empty_scans = 0  # processes start and end during a scan, so one empty scan proves nothing
        while empty_scans < 2:
            empty_scans = 0 if freeze_and_kill(self.find) else empty_scans + 1
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            if time.monotonic() > deadline:
                return
            time.sleep(SCAN_SECONDS)
