"""Ends what a crashed predecessor left running."""

from collections.abc import Collection

import anyio

from hark.processes.cookies import Owner
from hark.processes.kill import kill_all
from hark.processes.process_table import Finder, Seen, platform_finder

SWEEP_SECONDS = 0.5


async def sweep(owner: Owner, spared: Collection[str] = (), finder: Finder | None = None) -> list[Seen]:
    """End the processes whose owner had the same home and is dead; return them. Those of a living owner stay.

    So do those with one of the `spared` cookies: a person let them go, see Detached.
    Without /proc nothing is found. Takes at most half a second; safe to cancel.
    """
    looking = finder or platform_finder()
    met: dict[int, Seen] = {}

    def look() -> list[Seen]:
        found = looking.left_behind(owner, spared)
        met.update((seen.pid, seen) for seen in found)
        return found

    with anyio.move_on_after(SWEEP_SECONDS):
        await kill_all(look)
    return list(met.values())
