"""An agent's life: what runs beside its sessions, and the order in which all of it ends."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from hark.engine.session.router import Router
from hark.processes.cookies import Detached, sweep

if TYPE_CHECKING:
    from hark.app.agent import Agent

EXIT_SHARE = 0.8  # of exit_seconds; the rest is for the store, and for the interpreter


@asynccontextmanager
async def running(agent: "Agent", router: Router, leaving: Callable[[str], None]) -> AsyncGenerator[None]:
    """Run the sessions, the servers and the rest; at the end settle the turns first, and bound it all."""
    parts, bench = agent.parts, agent.bench
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        await tasks.start(router.run)
        tasks.start_soon(
            sweep, parts.owner, Detached(parts.places.detached).cookies()
        )  # what a crash left running; nobody waits for it
        tasks.start_soon(parts.run)
        await tasks.start(agent.reflection.run)
        try:
            yield
        except BaseException as error:  # noqa: BLE001 raised again below, outside of the group that would wrap it
            failure = error
        with anyio.move_on_after(bench.rules.limits.exit_seconds * EXIT_SHARE, shield=True):
            leaving(_turns(router))
            agent.reflection.close()
            await router.close()
            leaving(", ".join(bench.quarantine.names) or "tools")
            await bench.quarantine.close()
            leaving("background processes")
            await parts.close()
            leaving("what undo keeps")
            await bench.snapshots.close()
            leaving("MCP servers")
        tasks.cancel_scope.cancel()
    leaving("saving the session")
    if failure is not None:
        raise failure


def _turns(router: Router) -> str:
    busy = [door.id for door in router.doors if door.is_busy]
    return f"stopping {', '.join(busy)}" if busy else "saving the session"
