"""Ends processes for certain: frozen before they are killed, so that none can answer another's death."""

import asyncio
import contextlib
import os
import select
import selectors
import signal
import sys
from collections.abc import Callable, Iterable

import anyio

from hark.processes.process_table import Seen

FREEZE_ROUNDS = 5
SCAN_SECONDS = 0.001

Find = Callable[[], list[Seen]]


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
    with contextlib.suppress(ProcessLookupError), contextlib.closing(_ExitDescriptor(pid)) as descriptor:
        loop.add_reader(descriptor.fileno(), ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor.fileno())


def has_exited(pid: int, seconds: float) -> bool:
    """Wait for the end of a process that was killed, holding everything else: for when there is no time to await."""
    try:
        descriptor = _ExitDescriptor(pid)
    except ProcessLookupError:
        return True
    with contextlib.closing(descriptor), selectors.DefaultSelector() as selector:
        selector.register(descriptor.fileno(), selectors.EVENT_READ)
        return bool(selector.select(seconds))


if sys.platform == "linux":

    class _ExitDescriptor:
        """Becomes readable when a process ends."""

        def __init__(self, pid: int) -> None:
            self._descriptor = os.pidfd_open(pid)

        def fileno(self) -> int:
            return self._descriptor

        def close(self) -> None:
            os.close(self._descriptor)

else:

    class _ExitDescriptor:
        """Becomes readable when a process ends."""

        def __init__(self, pid: int) -> None:
            self._queue = select.kqueue()
            flags = select.KQ_EV_ADD | select.KQ_EV_ONESHOT
            self._queue.control([select.kevent(pid, select.KQ_FILTER_PROC, flags, select.KQ_NOTE_EXIT)], 0)

        def fileno(self) -> int:
            return self._queue.fileno()

        def close(self) -> None:
            self._queue.close()
