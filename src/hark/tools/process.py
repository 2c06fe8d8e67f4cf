"""A process tree that can be ended whole."""

import contextlib
import os
import signal

import anyio
from msgspec import Struct

from hark.tools.ending import Find, certain, exited, freeze_and_kill, has_exited, kill_all, send, until_gone
from hark.tools.finder import Finder, Seen, platform_finder

GRACE_SECONDS = 0.2
KILL_SECONDS = 0.5
REAP_SECONDS = 0.05


class Stopped(Struct, frozen=True):
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
        self._cookie = cookie
        self._finder = finder or platform_finder()

    def members(self) -> list[Seen]:
        """Return what lives of it."""
        return self._finder.tree(self._root, self._cookie)

    async def exited(self) -> None:
        """Return when its first process has ended; others may live on. Safe to cancel."""
        await exited(self._root)

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> Stopped:
        """End all of it: asked first, killed after `grace_seconds`. Takes less than a second, whatever it does.

        Cancelling it skips what is left of the grace: all that can be found is killed on the way out.
        """
        met: dict[int, Seen] = {}

        def look() -> list[Seen]:
            found = self.members()
            met.update((seen.pid, seen) for seen in certain(found))
            return found

        try:
            with anyio.move_on_after(grace_seconds):
                if grace_seconds:
                    await self._ask_to_end(look)
                    return Stopped(tuple(met.values()))
            with anyio.move_on_after(KILL_SECONDS):
                self._signal_group(signal.SIGSTOP)
                await kill_all(look)
        except anyio.get_cancelled_exc_class():
            freeze_and_kill(self.members)
            has_exited(self._root, REAP_SECONDS)  # so that it can be reaped
            raise
        left = {seen.pid: seen for seen in certain(self.members())}
        return Stopped(tuple(seen for seen in met.values() if seen.pid not in left), tuple(left.values()))

    async def _ask_to_end(self, look: Find) -> None:
        found = look()
        # The group by one signal, which no fork can slip past. What was stopped must go on to hear it.
        self._signal_group(signal.SIGTERM, signal.SIGCONT)
        send((seen for seen in found if seen.group != self._root), signal.SIGTERM, signal.SIGCONT)
        await until_gone(look)

    def _signal_group(self, *signals: signal.Signals) -> None:
        for number in signals:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._root, number)
