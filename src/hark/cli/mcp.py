"""`hark mcp`: list the servers, test them, log in to one."""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import msgspec

from hark.app.settings import config
from hark.app.settings.types import SettingsError
from hark.app.shutdown import BAD_USAGE, COMPLETED, FAILED
from hark.mcp.failures import Backoff
from hark.mcp.offers import ServerState, ServerStatus
from hark.mcp.server_context import ServerPaths
from hark.mcp.servers import Servers
from hark.mcp.settings import ServerSettings, ServerSettingsError, Start, read_servers
from hark.processes.cookies import this_process
from hark.processes.piped import spawner

LOGIN_SECONDS = 330.0
ROOM_SECONDS = 5.0


async def mcp(options: argparse.Namespace) -> int:
    """`options.action` is list, test or login; `options.server` names one server, or None for all."""
    home = config.home_directory()
    servers = _servers(home)
    if options.server is not None and options.server not in servers:
        known = ", ".join(servers) or "none; see docs/mcp.md for how to add one"
        sys.stderr.write(f"hark: there is no MCP server {options.server!r}; the settings have: {known}\n")
        return BAD_USAGE
    chosen = {name: one for name, one in servers.items() if options.server in (None, name)}
    match options.action:
        case "list":
            return _list(home, chosen)
        case "login":
            return await _login(home, chosen, options.server)
        case _:
            return await _test(home, chosen)


def _servers(home: Path) -> dict[str, ServerSettings]:
    try:
        return read_servers(config.load(home, config.workspace()).mcp)
    except ServerSettingsError as error:
        raise SettingsError(str(error)) from error


def _list(home: Path, settings: Mapping[str, ServerSettings]) -> int:
    """Print what is known, without starting anything."""
    for one in _made(home, settings, _silence).status():
        server = settings[one.name]
        tools = f"{len(one.tools)} tools" if one.tools else "tools not known yet"
        state = "disabled" if one.state is ServerState.DISABLED else tools
        _print(f"{one.name:20}  {state:20}  {server.command or server.url.split('?')[0]}")
    if not settings:
        _print("There are no MCP servers in the settings; see docs/mcp.md for how to add one.")
    return COMPLETED


async def _test(home: Path, settings: Mapping[str, ServerSettings]) -> int:
    """Start each server, once, and print what it offers or why it can't be used."""
    tested = {name: _eager(one) for name, one in settings.items() if one.enabled}
    if not tested:
        _print("There are no MCP servers to test in the settings.")
        return COMPLETED
    began = time.monotonic()
    statuses: list[ServerStatus] = []
    async with anyio.create_task_group() as tasks:
        for name, one in tested.items():
            tasks.start_soon(_try, home, name, one, statuses)
    for one in sorted(statuses, key=lambda status: list(tested).index(status.name)):
        _tell(one)
    _print(f"{sum(map(_is_up, statuses))} of {len(tested)} work ({time.monotonic() - began:.1f} s)")
    return COMPLETED if all(map(_is_up, statuses)) else FAILED


async def _login(home: Path, settings: Mapping[str, ServerSettings], name: str | None) -> int:
    if name is None or settings[name].login is None:
        sys.stderr.write("hark: name a server with `oauth = true` in its settings: hark mcp login NAME\n")
        return BAD_USAGE
    statuses: list[ServerStatus] = []
    await _try(home, name, _eager(settings[name]), statuses, can_log_in=True)
    _tell(statuses[0])
    return COMPLETED if _is_up(statuses[0]) else FAILED


async def _try(
    home: Path, name: str, settings: ServerSettings, statuses: list[ServerStatus], *, can_log_in: bool = False
) -> None:
    """Run one server until it is up or has failed for good; `statuses` gets how it stands then."""
    servers = _made(home, {name: settings}, _notice if can_log_in else _silence)
    ends = (
        (ServerState.CONNECTED, ServerState.PARKED)
        if can_log_in
        else (ServerState.CONNECTED, ServerState.PARKED, ServerState.LOGIN)
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(servers.run)
        with anyio.move_on_after(LOGIN_SECONDS if can_log_in else settings.start_seconds + ROOM_SECONDS):
            await servers.reached(*ends)
        statuses.extend(servers.status())
        tasks.cancel_scope.cancel()


def _made(home: Path, settings: Mapping[str, ServerSettings], notice: Callable[[str], None]) -> Servers:
    places = ServerPaths.in_home(home, config.workspace())
    return Servers(settings, places, spawner(this_process(home)), notice, Backoff(tries=1))


def _eager(settings: ServerSettings) -> ServerSettings:
    return msgspec.structs.replace(settings, start=Start.EAGER)


def _is_up(status: ServerStatus) -> bool:
    return status.state is ServerState.CONNECTED


def _tell(status: ServerStatus) -> None:
    if status.state is ServerState.LOGIN:
        _print(f"{status.name}: wants you to log in: hark mcp login {status.name}")
    elif _is_up(status):
        _print(f"{status.name}: works, {len(status.tools)} tools: {', '.join(status.tools)}")
    else:
        _print(f"{status.name}: does not work: {status.last_error or status.state}")


def _notice(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _silence(_: str) -> None:
    """What there is to say is said at the end."""


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
