"""`hark mcp`: list the servers, test them, log in to one."""

import argparse
import asyncio
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from hark.app.doctor.mcp_servers import try_server
from hark.app.services import servers_of
from hark.app.settings import config
from hark.app.shutdown import BAD_USAGE, COMPLETED, FAILED
from hark.cli.io.printing import print_error, print_line
from hark.mcp.offers import ServerState, ServerStatus
from hark.mcp.server_context import ServerPaths
from hark.mcp.servers import Servers
from hark.mcp.settings import ServerSettings
from hark.processes.cookies import this_process
from hark.processes.piped import spawner

LOGIN_SECONDS = 330.0
ROOM_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", nargs="?", choices=("list", "test", "login"), default="list")
    parser.add_argument("server", nargs="?", help="only this one")


async def run(options: argparse.Namespace) -> int:
    """`options.action` is list, test or login; `options.server` names one server, or None for all."""
    home = config.home_directory()
    servers = servers_of(config.load_here())
    if options.server is not None and options.server not in servers:
        known = ", ".join(servers) or "none; see docs/mcp.md for how to add one"
        print_error(f"there is no MCP server {options.server!r}; the settings have: {known}")
        return BAD_USAGE
    chosen = {name: one for name, one in servers.items() if options.server in (None, name)}
    match options.action:
        case "list":
            return _list(home, chosen)
        case "login":
            return await _login(home, chosen, options.server)
        case _:
            return await _test(home, chosen)


def _list(home: Path, settings: Mapping[str, ServerSettings]) -> int:
    """Print what is known, without starting anything."""
    places = ServerPaths.in_home(home, config.workspace())
    for one in Servers(settings, places, spawner(this_process(home))).status():
        server = settings[one.name]
        tools = f"{len(one.tools)} tools" if one.tools else "tools not known yet"
        state = "disabled" if one.state is ServerState.DISABLED else tools
        print_line(f"{one.name:20}  {state:20}  {server.command or server.url.split('?')[0]}")
    if not settings:
        print_line("There are no MCP servers in the settings; see docs/mcp.md for how to add one.")
    return COMPLETED


async def _test(home: Path, settings: Mapping[str, ServerSettings]) -> int:
    """Start each server, once, and print what it offers or why it can't be used."""
    tested = {name: one for name, one in settings.items() if one.enabled}
    if not tested:
        print_line("There are no MCP servers to test in the settings.")
        return COMPLETED
    began = time.monotonic()
    tries = (try_server(home, name, one, one.start_seconds + ROOM_SECONDS) for name, one in tested.items())
    statuses = await asyncio.gather(*tries)
    for one in statuses:
        _tell(one)
    print_line(f"{sum(map(_is_up, statuses))} of {len(tested)} work ({time.monotonic() - began:.1f} s)")
    return COMPLETED if all(map(_is_up, statuses)) else FAILED


async def _login(home: Path, settings: Mapping[str, ServerSettings], name: str | None) -> int:
    if name is None or settings[name].login is None:
        print_error("name a server with `oauth = true` in its settings: hark mcp login NAME")
        return BAD_USAGE
    ends = (ServerState.CONNECTED, ServerState.PARKED)
    status = await try_server(home, name, settings[name], LOGIN_SECONDS, ends, _notice)
    _tell(status)
    return COMPLETED if _is_up(status) else FAILED


def _is_up(status: ServerStatus) -> bool:
    return status.state is ServerState.CONNECTED


def _tell(status: ServerStatus) -> None:
    if status.state is ServerState.LOGIN:
        print_line(f"{status.name}: wants you to log in: hark mcp login {status.name}")
    elif _is_up(status):
        print_line(f"{status.name}: works, {len(status.tools)} tools: {', '.join(status.tools)}")
    else:
        print_line(f"{status.name}: does not work: {status.last_error or status.state}")


def _notice(text: str) -> None:
    sys.stderr.write(f"{text}\n")
