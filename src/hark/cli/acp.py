"""`hark acp`: an agent for editors, on stdin and stdout, with a way out that is always bounded."""

import argparse
import asyncio
import logging
import os
import stat
import sys
from importlib.util import find_spec

from hark.app.logs import start_logs
from hark.app.settings import config
from hark.app.settings.types import SettingsError
from hark.app.shutdown import COMPLETED, Signals, Watchdog
from hark.cli.io.standard_output import own_output

NEEDED = "hark acp needs the package agent-client-protocol. Install it: pip install 'hark-agent[acp]'."


async def acp(options: argparse.Namespace) -> int:
    """Serve one editor until it leaves.

    Raises:
        SettingsError: The settings can't be used, or the protocol's library is not installed.
    """
    if find_spec("acp") is None:
        raise SettingsError(NEEDED)
    home = config.home_directory()
    start_logs(home, is_verbose=options.verbose)
    _log_library()
    limits = config.load(home, config.workspace()).limits
    out = await own_output()

    from hark import __version__
    from hark.app.sessions.editor_agents import opened_workplaces
    from hark.surfaces.acp.incoming import Incoming
    from hark.surfaces.acp.serve import EditorServer
    from hark.surfaces.acp.workspace import EditorServices

    incoming = Incoming()
    watchdog = Watchdog(limits.exit_seconds)
    signals = Signals(watchdog, lambda _: incoming.end())
    signals.listen()
    await _read_input(incoming)
    async with opened_workplaces(home, watchdog.waits_for) as places:
        services = EditorServices(places.commands, places.create, places.open, places.listed)
        await EditorServer(incoming, out, __version__).run(services, watchdog.arm)
    return signals.code or COMPLETED


def _log_library() -> None:
    """Have what the protocol's library says of broken requests in our log: it would go to stderr."""
    for handler in (*logging.getLogger("hark").handlers, logging.NullHandler()):
        logging.getLogger().addHandler(handler)


async def _read_input(protocol: asyncio.Protocol) -> None:
    """Have standard input read, whatever it is connected to; one that is closed has ended."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] so it is when Python starts without one
        protocol.eof_received()
        return
    # The loop makes what it reads non-blocking, and a terminal is shared with the shell: it is opened once more.
    descriptor = os.open(os.ttyname(0), os.O_RDONLY | os.O_NOCTTY) if os.isatty(0) else os.dup(0)
    source = os.fdopen(descriptor, "rb", buffering=0)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or source.isatty():
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, source)
        return
    with source:  # a file, or /dev/null: no event tells of these, and they never make anyone wait
        protocol.data_received(source.read())
    protocol.eof_received()
