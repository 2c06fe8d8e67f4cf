"""A failing MCP server: the CPU time of one retry, and its share of a core at one retry per minute."""

import asyncio
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.run import BenchOptions
from bench.table import Figure, Percentiles
from hark.mcp.retry_policy import RetryPolicy
from hark.mcp.server_context import ServerPaths
from hark.mcp.servers import Servers
from hark.mcp.settings import ServerSettings
from hark.processes.cookies import current_owner
from hark.processes.piped_process import create_spawner

RETRIES = 200
COMMANDS = {
    "missing program": ServerSettings(command="/no/such/program"),
    "program that exits": ServerSettings(command="/bin/false"),
    "Python program that exits": ServerSettings(command=sys.executable, args=("-S", "-E", "-c", "raise SystemExit(1)")),
}


def measure(options: BenchOptions) -> list[Figure]:
    """Retry each server many times without pauses, and measure the CPU time of this process and of its children."""
    return [figure for name in COMMANDS for figure in options.run(_measure(name, options.scale(RETRIES)))]


async def _measure(name: str, retries: int) -> list[Figure]:
    policy = RetryPolicy(first_seconds=0.0, tries=1, failed_seconds=0.0)
    with TemporaryDirectory(prefix="hark-bench-") as home:
        paths = ServerPaths.in_home(Path(home), Path(home))
        servers = Servers(
            {"one": COMMANDS[name]}, paths, create_spawner(current_owner(Path(home))), retry_policy=policy
        )
        running = asyncio.create_task(servers.run())
        await _wait_for_restarts(servers, 3)  # the first start loads the SDK
        before, started = os.times(), servers.status()[0].restarts
        await _wait_for_restarts(servers, started + retries)
        after, count = os.times(), servers.status()[0].restarts - started
        running.cancel()
        await asyncio.wait([running])
    own_ms = (after.user + after.system - before.user - before.system) / count * 1000
    child_user, child_system = (
        after.children_user - before.children_user,
        after.children_system - before.children_system,
    )
    child_ms = (child_user + child_system) / count * 1000
    return [
        Figure(f"{name}: CPU of Hark per retry", "ms", Percentiles(own_ms), None, Percentiles(20)),
        Figure(f"{name}: CPU of the program per retry", "ms", Percentiles(child_ms)),
        Figure(f"{name}: share of a core at one retry per minute", "%", Percentiles((own_ms + child_ms) / 600)),
    ]


async def _wait_for_restarts(servers: Servers, count: int) -> None:
    while servers.status()[0].restarts < count:  # noqa: ASYNC110 an event for each attempt would add to its cost
        await asyncio.sleep(0.01)
