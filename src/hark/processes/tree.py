"""A process tree that can be killed whole."""

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

from hark.processes.process_table import HAS_PROC, NAMELESS, FindTree, Seen, find_by_proc, find_by_ps

GRACE_SECONDS = 0.2
KILL_SECONDS = 0.5
REAP_SECONDS = 0.05
FREEZE_ROUNDS = 5
SCAN_SECONDS = 0.001

Find = Callable[[], list[Seen]]


class StopResult(Struct, frozen=True):
    """What a stop met: the processes that it ended, and those that it could not."""

    ended: tuple[Seen, ...] = ()
    left: tuple[Seen, ...] = ()


class ProcessTree:
    """All that comes of one process, which leads its own session and gave its offspring a cookie.

    Whoever started that process reaps it, and only after the stop: until then its pid, which is also the name of its
    group, can't become another's.
    """

    def __init__(self, root: int, cookie: str, find: FindTree | None = None) -> None:
        self._root = root
        self.cookie = cookie
        self._find = find or (find_by_proc if HAS_PROC else find_by_ps)
        # What hides its cookie is known by its parent alone, and that may end before it does.
        self._known: dict[int, Seen] = {}

    def members(self) -> list[Seen]:
        """Return what lives of it."""
        found = self._find(self._root, self.cookie, self._known)
        self._known.update((seen.pid, seen) for seen in certain(found))
        return found

    def rest(self) -> list[Seen]:
        """Return what lives of it besides its first process."""
        return [seen for seen in self.members() if seen.pid != self._root]

    async def exited(self) -> None:
        """Return when its first process has ended; others may live on. Safe to cancel."""
        await exited(self._root)

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> StopResult:
        """End all of it: asked first, killed after `grace_seconds`. Takes less than a second beyond them.

        Cancelling it skips what is left of the grace: all that can be found is killed on the way out.
        """
        return await self._end(self.members, grace_seconds, self._root)

    async def stop_rest(self) -> StopResult:
        """End all of it but its first process, as `stop` does."""
        return await self._end(self.rest, GRACE_SECONDS, None)

    async def _end(self, find: Find, grace_seconds: float, group: int | None) -> StopResult:
        met: dict[int, Seen] = {}

        def look() -> list[Seen]:
            found = find()
            # One that is about to be gone has lost its name.
            named = [seen for seen in certain(found) if seen.command != NAMELESS or seen.pid not in met]
            met.update((seen.pid, seen) for seen in named)
            return found

        try:
            with anyio.move_on_after(grace_seconds):
                if grace_seconds:
                    await _ask_to_end(look, group)
                    return StopResult(tuple(met.values()))
            with anyio.move_on_after(KILL_SECONDS):
                _signal_group(group, signal.SIGSTOP)
                await kill_all(look)
        except anyio.get_cancelled_exc_class():
            freeze_and_kill(find)
            if group is not None:
                has_exited(self._root, REAP_SECONDS)  # so that it can be reaped
            raise
        left = {seen.pid: seen for seen in certain(find())}
        return StopResult(tuple(seen for seen in met.values() if seen.pid not in left), tuple(left.values()))


async def _ask_to_end(look: Find, group: int | None) -> None:
    found = look()
    # The group by one signal, which no fork can slip past. What was stopped must go on to hear it.
    _signal_group(group, signal.SIGTERM, signal.SIGCONT)
    send((seen for seen in found if seen.group != group), signal.SIGTERM, signal.SIGCONT)
    await until_gone(look)


def _signal_group(group: int | None, *signals: signal.Signals) -> None:
    if group is None:
        return
    for number in signals:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def certain(processes: Iterable[Seen]) -> list[Seen]:
    """Return those that are known to be ours."""
    return [seen for seen in processes if seen.is_certain]


def send(processes: Iterable[Seen], *signals: signal.Signals) -> None:
    """Send signals to processes. Those that are gone, another user's or not certain to be ours are passed over."""
    for seen in certain(processes):
        for number in signals:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(seen.pid, number)


def freeze_and_kill(find: Find) -> list[Seen]:
    """Kill all that is found, without waiting, and return what was seen.

    Stopped first: a process that starts itself anew, or is watched by another, gets no turn in between.
    """
    frozen: dict[int, Seen] = {}
    found: list[Seen] = []
    for _ in range(FREEZE_ROUNDS):
        found = find()
        fresh = [seen for seen in certain(found) if seen.pid not in frozen]
        if not fresh:
            break
        send(fresh, signal.SIGSTOP)
        frozen.update((seen.pid, seen) for seen in fresh)
    send(frozen.values(), signal.SIGKILL)
    return [*frozen.values(), *(seen for seen in found if not seen.is_certain)]


async def kill_all(find: Find) -> None:
    """Kill until nothing is found any more. The caller bounds it."""
    await until_gone(lambda: freeze_and_kill(find))


async def until_gone(look: Find) -> None:
    """Return when two looks in a row see nothing. The caller bounds it; safe to cancel."""
    found = look()
    was_clean = False
    while found or not was_clean:
        was_clean = not found
        for seen in certain(found):
            await exited(seen.pid)
        await anyio.sleep(SCAN_SECONDS)
        found = look()


async def exited(pid: int) -> None:
    """Return when the process has ended, whether it was reaped or not. Safe to cancel."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    with contextlib.suppress(ProcessLookupError), contextlib.closing(_exit_descriptor(pid)) as descriptor:
        loop.add_reader(descriptor.fileno(), ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor.fileno())


def has_exited(pid: int, seconds: float) -> bool:
    """Wait for the end of a process that was killed, holding everything else: for when there is no time to await."""
    try:
        descriptor = _exit_descriptor(pid)
    except ProcessLookupError:
        return True
    with contextlib.closing(descriptor), selectors.DefaultSelector() as selector:
        selector.register(descriptor.fileno(), selectors.EVENT_READ)
        return bool(selector.select(seconds))


if sys.platform == "linux":

    def _exit_descriptor(pid: int) -> io.FileIO:
        """Return what becomes readable when a process ends."""
        return io.FileIO(os.pidfd_open(pid))

else:

    def _exit_descriptor(pid: int) -> select.kqueue:
        """Return what becomes readable when a process ends."""
        queue = select.kqueue()
        flags = select.KQ_EV_ADD | select.KQ_EV_ONESHOT
        queue.control([select.kevent(pid, select.KQ_FILTER_PROC, flags, select.KQ_NOTE_EXIT)], 0)
        return queue
