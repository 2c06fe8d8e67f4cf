"""MCP checks of `hark doctor`: starts every server once, concurrently, for a short time."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import anyio
import msgspec

from hark.app.doctor.results import CheckResult, Level, connection_problem
from hark.app.settings import config
from hark.app.settings.types import Settings
from hark.mcp.retry_policy import RetryPolicy
from hark.mcp.server_context import ServerPaths
from hark.mcp.server_offer import ServerState, ServerStatus
from hark.mcp.servers import Servers
from hark.mcp.settings import ServerSettings, ServerSettingsError, StartMode, read_servers
from hark.processes.cookies import current_owner
from hark.processes.piped_process import create_spawner

START_TIMEOUT_SECONDS = 2.0
FINAL_STATES = (ServerState.CONNECTED, ServerState.FAILED, ServerState.LOGIN)


async def check_mcp_servers(home: Path, settings: Settings) -> list[CheckResult]:
    """Check every configured server. A failing server is reported as a warning, invalid settings as an error."""
    try:
        servers = read_servers(settings.mcp)
    except ServerSettingsError as error:
        return [CheckResult("mcp", Level.BAD, str(error), "Fix the setting in config.toml; docs/mcp.md has examples.")]
    if not servers:
        return [CheckResult("mcp", Level.OK, "no servers in the settings")]
    with suppress(ImportError):  # each server's check reports it
        # Import our own libraries first, so that their loading time doesn't count against a server.
        await asyncio.to_thread(import_module, "hark.mcp.connection")
    return await asyncio.gather(
        *(_check_server(home, name, server_settings) for name, server_settings in servers.items())
    )


async def _check_server(home: Path, name: str, settings: ServerSettings) -> CheckResult:
    if not settings.enabled:
        return CheckResult("mcp", Level.OK, f"{name}: disabled in the settings")
    if settings.url and (problem := await connection_problem(settings.url)):
        return CheckResult("mcp", Level.WARN, f"{name}: {problem}", "Check the server's URL and the network.")
    return _server_result(await probe_server(home, name, settings, START_TIMEOUT_SECONDS))


async def probe_server(
    home: Path,
    name: str,
    settings: ServerSettings,
    seconds: float,
    final_states: Sequence[ServerState] = FINAL_STATES,
    notice: Callable[[str], None] = lambda _: None,
) -> ServerStatus:
    """Start one server without retries. Return its status once it is in `final_states` or after `seconds`."""
    eager = msgspec.structs.replace(settings, start=StartMode.EAGER)
    paths = ServerPaths.in_home(home, config.workspace())
    servers = Servers({name: eager}, paths, create_spawner(current_owner(home)), notice, RetryPolicy(tries=1))
    statuses: list[ServerStatus] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(servers.run)
        with anyio.move_on_after(seconds):
            await servers.wait_for_state(*final_states)
        statuses.extend(servers.status())  # read before the cancellation disconnects the server
        tasks.cancel_scope.cancel()
    return statuses[0]


def _server_result(status: ServerStatus) -> CheckResult:
    name = status.name
    match status.state:
        case ServerState.CONNECTED:
            return CheckResult("mcp", Level.OK, f"{name}: works, {len(status.tools)} tools")
        case ServerState.LOGIN:
            return CheckResult("mcp", Level.WARN, f"{name}: requires a login.", f"Run: hark mcp login {name}")
        case ServerState.FAILED:
            advice = f"See logs/mcp-{name}.log in the home, fix its settings, then run: hark mcp test {name}"
            return CheckResult("mcp", Level.WARN, f"{name}: failed: {status.last_error}", advice)
        case _:
            text = f"{name}: did not answer within {START_TIMEOUT_SECONDS:g} s; a first start may take longer."
            return CheckResult("mcp", Level.WARN, text, f"To give it more time, run: hark mcp test {name}")
