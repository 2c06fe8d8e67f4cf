"""An agent's lifecycle: the tasks that run beside its sessions, and the order in which they stop."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from hark.engine.session.router import SessionRouter
from hark.engine.turn.route_prober import RouteProber
from hark.processes.cookies import DetachedProcesses, kill_leftover_processes

if TYPE_CHECKING:
    from hark.app.agent import Agent

EXIT_SHARE = 0.8  # of exit_seconds; the rest is for the store and the interpreter


@asynccontextmanager
async def run_agent(agent: "Agent", router: SessionRouter, on_exit_step: Callable[[str], None]) -> AsyncGenerator[None]:
    """Run the sessions, MCP servers and other services. On exit, settle the turns first, within a time limit."""
    services, engine = agent.services, agent.engine
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        await tasks.start(router.run)
        tasks.start_soon(
            kill_leftover_processes, services.owner, DetachedProcesses(services.paths.detached_file).read_cookies()
        )  # kills processes left over from a crash, in the background
        tasks.start_soon(services.run)
        tasks.start_soon(RouteProber(engine.routes).run)
        await tasks.start(agent.reflection.run)
        try:
            yield
        except BaseException as error:  # noqa: BLE001 raised again below, outside of the group that would wrap it
            failure = error
        with anyio.move_on_after(engine.rules.limits.exit_seconds * EXIT_SHARE, shield=True):
            on_exit_step(_first_exit_step(router))
            agent.reflection.close()
            await router.close()
            on_exit_step(", ".join(engine.quarantine.names) or "tools")
            await engine.quarantine.close()
            on_exit_step("background processes")
            await services.close()
            on_exit_step("undo snapshots")
            await engine.snapshots.close()
            on_exit_step("MCP servers")
        tasks.cancel_scope.cancel()
    on_exit_step("saving the session")
    if failure is not None:
        raise failure


def _first_exit_step(router: SessionRouter) -> str:
    busy = [proxy.id for proxy in router.proxies if proxy.is_busy]
    return f"stopping {', '.join(busy)}" if busy else "saving the session"
