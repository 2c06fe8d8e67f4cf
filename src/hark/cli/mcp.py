"""`hark mcp`: lists the MCP servers, tests them, or logs in to one."""

import argparse
import asyncio
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from hark.app.doctor.mcp_servers import probe_server
from hark.app.services import read_mcp_servers
from hark.app.settings import config
from hark.app.shutdown import BAD_USAGE, COMPLETED, EXIT_SECONDS, FAILED, Signals, Watchdog
from hark.cli.io.printing import print_error, print_line
from hark.mcp.server_context import ServerPaths
from hark.mcp.server_offer import ServerState, ServerStatus
from hark.mcp.servers import Servers
from hark.mcp.settings import ServerSettings
from hark.processes.cookies import current_owner
from hark.processes.piped_process import create_spawner

LOGIN_SECONDS = 330.0
EXTRA_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", nargs="?", choices=("list", "test", "login"), default="list")
    parser.add_argument("server", nargs="?", help="the name of one server (default: all)")


async def run(options: argparse.Namespace) -> int:
    """Run the command. A signal kills the servers that it started, and exits."""
    with Signals(Watchdog(EXIT_SECONDS)):
        return await run_action(options)


async def run_action(options: argparse.Namespace) -> int:
    """Run the action (list, test or login) for the named server, or for all servers."""
    home = config.home_directory()
    servers = read_mcp_servers(config.load_here())
    if options.server is not None and options.server not in servers:
        known = ", ".join(servers) or "none; docs/mcp.md explains how to add one"
        print_error(f"no MCP server named {options.server!r}; configured servers: {known}")
        return BAD_USAGE
    chosen = {name: settings for name, settings in servers.items() if options.server in (None, name)}
    match options.action:
        case "list":
            return _print_servers(home, chosen)
        case "login":
            return await _log_in(home, chosen, options.server)
        case _:
            return await _test_servers(home, chosen)


def _print_servers(home: Path, settings: Mapping[str, ServerSettings]) -> int:
    """Print the known state of each server without starting it."""
    paths = ServerPaths.in_home(home, config.workspace())
    for status in Servers(settings, paths, create_spawner(current_owner(home))).status():
        server = settings[status.name]
        tools = f"{len(status.tools)} tools" if status.tools else "tools not known yet"
        state = "disabled" if status.state is ServerState.DISABLED else tools
        print_line(f"{status.name:20}  {state:20}  {server.command or server.url.split('?')[0]}")
        if status.last_error and status.state is not ServerState.DISABLED:
            print_line(f"{'':20}  the last start failed: {status.last_error}")
    if not settings:
        print_line("No MCP servers are configured; docs/mcp.md explains how to add one.")
    return COMPLETED


async def _test_servers(home: Path, settings: Mapping[str, ServerSettings]) -> int:
    """Start each server once. Print its tools, or the reason for its failure."""
    tested = {name: server for name, server in settings.items() if server.enabled}
    if not tested:
        print_line("No enabled MCP servers to test.")
        return COMPLETED
    began = time.monotonic()
    tries = (probe_server(home, name, server, server.start_seconds + EXTRA_SECONDS) for name, server in tested.items())
    statuses = await asyncio.gather(*tries)
    for status in statuses:
        _print_status(status)
    print_line(f"{sum(map(_is_connected, statuses))} of {len(tested)} work ({time.monotonic() - began:.1f} s)")
    return COMPLETED if all(map(_is_connected, statuses)) else FAILED


async def _log_in(home: Path, settings: Mapping[str, ServerSettings], name: str | None) -> int:
    if name is None or settings[name].login is None:
        print_error("name a server that has `oauth = true` in its settings: hark mcp login NAME")
        return BAD_USAGE
    final_states = (ServerState.CONNECTED, ServerState.FAILED)
    status = await probe_server(home, name, settings[name], LOGIN_SECONDS, final_states, _print_notice)
    _print_status(status)
    return COMPLETED if _is_connected(status) else FAILED


def _is_connected(status: ServerStatus) -> bool:
    return status.state is ServerState.CONNECTED


def _print_status(status: ServerStatus) -> None:
    if status.state is ServerState.LOGIN:
        print_line(f"{status.name}: requires a login. Run: hark mcp login {status.name}")
    elif _is_connected(status):
        print_line(f"{status.name}: works, {len(status.tools)} tools: {', '.join(status.tools)}")
    else:
        print_line(f"{status.name}: failed: {status.last_error or status.state}")


def _print_notice(text: str) -> None:
    sys.stderr.write(f"{text}\n")
