"""What `hark doctor` says about MCP servers: each is started once, side by side, for a short time."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import anyio
import msgspec

from hark.app.doctor.results import Finding, Level, reach
from hark.app.settings import config
from hark.app.settings.types import Settings
from hark.mcp.failures import RetryPolicy
from hark.mcp.offers import ServerState, ServerStatus
from hark.mcp.server_context import ServerPaths
from hark.mcp.servers import Servers
from hark.mcp.settings import ServerSettings, ServerSettingsError, Start, read_servers
from hark.processes.cookies import this_process
from hark.processes.piped import spawner

TRY_SECONDS = 2.0
ENDS = (ServerState.CONNECTED, ServerState.PARKED, ServerState.LOGIN)


async def mcp_servers(home: Path, settings: Settings) -> list[Finding]:
    """Try every server. One that fails costs its own tools and no turn; settings that are wrong cost the start."""
    try:
        servers = read_servers(settings.mcp)
    except ServerSettingsError as error:
        return [Finding("mcp", Level.BAD, str(error), "Mend that in config.toml; docs/mcp.md has examples.")]
    if not servers:
        return [Finding("mcp", Level.OK, "no servers in the settings")]
    with suppress(ImportError):  # told of each server
        # The time that our own libraries take to load is none that a server has lost.
        await asyncio.to_thread(import_module, "hark.mcp.connection")
    return await asyncio.gather(*(_tried(home, name, one) for name, one in servers.items()))


async def _tried(home: Path, name: str, settings: ServerSettings) -> Finding:
    if not settings.enabled:
        return Finding("mcp", Level.OK, f"{name}: disabled in the settings")
    if settings.url and (problem := await reach(settings.url)):
        return Finding("mcp", Level.WARN, f"{name}: {problem}", "Check its url and the network.")
    return _told(await try_server(home, name, settings, TRY_SECONDS))


async def try_server(
    home: Path,
    name: str,
    settings: ServerSettings,
    seconds: float,
    ends: Sequence[ServerState] = ENDS,
    notice: Callable[[str], None] = lambda _: None,
) -> ServerStatus:
    """Start one server, at once and without a second try; return its state when it is one of `ends` or time is up."""
    eager = msgspec.structs.replace(settings, start=Start.EAGER)
    places = ServerPaths.in_home(home, config.workspace())
    servers = Servers({name: eager}, places, spawner(this_process(home)), notice, RetryPolicy(tries=1))
    statuses: list[ServerStatus] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(servers.run)
        with anyio.move_on_after(seconds):
            await servers.reached(*ends)
        statuses.extend(servers.status())  # before the end, which disconnects it
        tasks.cancel_scope.cancel()
    return statuses[0]


def _told(status: ServerStatus) -> Finding:
    name = status.name
    match status.state:
        case ServerState.CONNECTED:
            return Finding("mcp", Level.OK, f"{name}: works, {len(status.tools)} tools")
        case ServerState.LOGIN:
            return Finding("mcp", Level.WARN, f"{name}: wants you to log in.", f"hark mcp login {name}")
        case ServerState.PARKED:
            advice = f"See logs/mcp-{name}.log in the home, mend its settings, then: hark mcp test {name}"
            return Finding("mcp", Level.WARN, f"{name}: does not work: {status.last_error}", advice)
        case _:
            text = f"{name}: did not answer within {TRY_SECONDS:g} s; a first start may take longer."
            return Finding("mcp", Level.WARN, text, f"This gives it longer: hark mcp test {name}")
