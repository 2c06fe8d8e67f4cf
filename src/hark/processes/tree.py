"""A process tree that can be stopped completely."""

import asyncio
import contextlib
import io
import os
import select
import selectors
import signal
import sys
from collections.abc import Callable, Iterable

import anyio
from msgspec import Struct

from hark.processes.process_table import (
    HAS_PROC,
    UNKNOWN_COMMAND,
    FindTree,
    ProcessInfo,
    find_tree_in_proc,
    find_tree_with_ps,
)

GRACE_SECONDS = 0.2
KILL_SECONDS = 0.5
REAP_SECONDS = 0.05
FREEZE_ROUNDS = 5
SCAN_SECONDS = 0.001

FindProcesses = Callable[[], list[ProcessInfo]]


class StopResult(Struct, frozen=True):
    """The result of stopping a process tree: `ended` lists stopped processes, `left` those that survived."""

    ended: tuple[ProcessInfo, ...] = ()
    left: tuple[ProcessInfo, ...] = ()


class ProcessTree:
    """All descendants of a root process, which leads its own session and passes a cookie to its descendants.

    The code that started the root must reap it only after the stop. Until then its pid, which is also its group id,
    can't be reused.
    """

    def __init__(self, root: int, cookie: str, find: FindTree | None = None) -> None:
        self._root = root
        self.cookie = cookie
        self._find = find or (find_tree_in_proc if HAS_PROC else find_tree_with_ps)
        # A process that hides its cookie is only found through its parent, which may end first.
        self._known: dict[int, ProcessInfo] = {}

    def members(self) -> list[ProcessInfo]:
        """Return the live processes in the tree."""
        found = self._find(self._root, self.cookie, self._known)
        self._known.update((process.pid, process) for process in filter_certain(found))
        return found

    def descendants(self) -> list[ProcessInfo]:
        """Return the live processes in the tree, without the root."""
        return [process for process in self.members() if process.pid != self._root]

    async def wait_until_root_exited(self) -> None:
        """Wait until the root has exited. Its descendants may still run. Safe to cancel."""
        await wait_until_exited(self._root)

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> StopResult:
        """Stop all processes: SIGTERM first, SIGKILL after `grace_seconds`. Takes less than a second more.

        Cancelling skips the rest of the grace and kills all processes that can be found.
        """
        return await self._stop_processes(self.members, grace_seconds, self._root)

    async def stop_descendants(self) -> StopResult:
        """Stop all processes but the root, as `stop` does."""
        return await self._stop_processes(self.descendants, GRACE_SECONDS, None)

    async def _stop_processes(self, find: FindProcesses, grace_seconds: float, group: int | None) -> StopResult:
        found_by_pid: dict[int, ProcessInfo] = {}

        def find_and_record() -> list[ProcessInfo]:
            found = find()
            # A process that is exiting no longer has a command line, so keep the known one.
            named = [
                process
                for process in filter_certain(found)
                if process.command != UNKNOWN_COMMAND or process.pid not in found_by_pid
            ]
            found_by_pid.update((process.pid, process) for process in named)
            return found

        try:
            with anyio.move_on_after(grace_seconds):
                if grace_seconds:
                    await _terminate(find_and_record, group)
                    return StopResult(tuple(found_by_pid.values()))
            with anyio.move_on_after(KILL_SECONDS):
                _signal_group(group, signal.SIGSTOP)
                await kill_all(find_and_record)
                if group is not None:  # an exiting process is no longer found, but can't be reaped yet
                    await wait_until_exited(group)
        except anyio.get_cancelled_exc_class():
            freeze_and_kill(find)
            if group is not None:
                has_exited_within(self._root, REAP_SECONDS)  # so that it can be reaped
            raise
        left = {process.pid: process for process in filter_certain(find())}
        return StopResult(
            tuple(process for process in found_by_pid.values() if process.pid not in left), tuple(left.values())
        )


async def _terminate(find: FindProcesses, group: int | None) -> None:
    found = find()
    # One signal reaches the whole group, so no fork can escape it. A stopped process must continue to receive it.
    _signal_group(group, signal.SIGTERM, signal.SIGCONT)
    send_signals((process for process in found if process.group != group), signal.SIGTERM, signal.SIGCONT)
    await wait_until_gone(find)
    if group is not None:
        await wait_until_exited(group)


def _signal_group(group: int | None, *signals: signal.Signals) -> None:
    if group is None:
        return
    for number in signals:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def filter_certain(processes: Iterable[ProcessInfo]) -> list[ProcessInfo]:
    """Return the processes that certainly belong to the tree."""
    return [process for process in processes if process.is_certain]


def send_signals(processes: Iterable[ProcessInfo], *signals: signal.Signals) -> None:
    """Send signals to processes. Skips processes that ended, belong to another user, or may not be in the tree."""
    for process in filter_certain(processes):
        for number in signals:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)


def freeze_and_kill(find: FindProcesses) -> list[ProcessInfo]:
    """Kill all processes that are found, without waiting, and return them.

    They are suspended first, so that none can restart itself or another while the others are killed.
    """
    frozen: dict[int, ProcessInfo] = {}
    found: list[ProcessInfo] = []
    for _ in range(FREEZE_ROUNDS):
        found = find()
        new_processes = [process for process in filter_certain(found) if process.pid not in frozen]
        if not new_processes:
            break
        send_signals(new_processes, signal.SIGSTOP)
        frozen.update((process.pid, process) for process in new_processes)
    send_signals(frozen.values(), signal.SIGKILL)
    return [*frozen.values(), *(process for process in found if not process.is_certain)]


async def kill_all(find: FindProcesses) -> None:
    """Kill processes until no more are found. The caller must set a time limit."""
    await wait_until_gone(lambda: freeze_and_kill(find))


async def wait_until_gone(find: FindProcesses) -> None:
    """Wait until two scans in a row find no process. The caller must set a time limit. Safe to cancel."""
    found = find()
    was_empty = False
    while found or not was_empty:
        was_empty = not found
        for process in filter_certain(found):
            await wait_until_exited(process.pid)
        await anyio.sleep(SCAN_SECONDS)
        found = find()


async def wait_until_exited(pid: int) -> None:
    """Wait until a process has exited, whether it was reaped or not. Safe to cancel."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    with contextlib.suppress(ProcessLookupError), contextlib.closing(_exit_descriptor(pid)) as descriptor:
        loop.add_reader(descriptor.fileno(), ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor.fileno())


def has_exited_within(pid: int, seconds: float) -> bool:
    """Return whether a process exits within `seconds`. Blocks the event loop: use only where awaiting is impossible."""
    try:
        descriptor = _exit_descriptor(pid)
    except ProcessLookupError:
        return True
    with contextlib.closing(descriptor), selectors.DefaultSelector() as selector:
        selector.register(descriptor.fileno(), selectors.EVENT_READ)
        return bool(selector.select(seconds))


if sys.platform == "linux":

    def _exit_descriptor(pid: int) -> io.FileIO:
        """Return an object whose descriptor becomes readable when the process exits."""
        return io.FileIO(os.pidfd_open(pid))

else:

    def _exit_descriptor(pid: int) -> select.kqueue:
        """Return an object whose descriptor becomes readable when the process exits."""
        queue = select.kqueue()
        flags = select.KQ_EV_ADD | select.KQ_EV_ONESHOT
        queue.control([select.kevent(pid, select.KQ_FILTER_PROC, flags, select.KQ_NOTE_EXIT)], 0)
        return queue
