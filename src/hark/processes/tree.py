"""A process tree that can be ended whole."""

import contextlib
import os
import signal

import anyio
from msgspec import Struct

from hark.processes.kill import Find, certain, exited, freeze_and_kill, has_exited, kill_all, send, until_gone
from hark.processes.process_table import NAMELESS, Finder, Seen, platform_finder

GRACE_SECONDS = 0.2
KILL_SECONDS = 0.5
REAP_SECONDS = 0.05


class StopResult(Struct, frozen=True):
    """What a stop met: the processes that it ended, and those that it could not."""

    ended: tuple[Seen, ...] = ()
    left: tuple[Seen, ...] = ()


class ProcessTree:
    """All that comes of one process, which leads its own session and gave its offspring a cookie.

    Whoever started that process reaps it, and only after the stop: until then its pid, which is also the name of its
    group, can't become another's.
    """

    def __init__(self, root: int, cookie: str, finder: Finder | None = None) -> None:
        self._root = root
        self.cookie = cookie
        self._finder = finder or platform_finder()
        # What hides its cookie is known by its parent alone, and that may end before it does.
        self._known: dict[int, Seen] = {}

    def members(self) -> list[Seen]:
        """Return what lives of it."""
        found = self._finder.tree(self._root, self.cookie, self._known)
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
