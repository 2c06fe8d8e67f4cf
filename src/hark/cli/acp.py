"""`hark acp`: serves an editor over stdin and stdout, using the Agent Client Protocol."""

import argparse
import asyncio
import logging
import os
import stat
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import BinaryIO

from hark.app.logs import start_logs
from hark.app.settings import SettingsError, config
from hark.app.shutdown import COMPLETED, Signals, Watchdog
from hark.cli.io.standard_input import feed_input

MISSING_PACKAGE = "hark acp needs the package agent-client-protocol. Install it: pip install 'hark-agent[acp]'."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--verbose", action="store_true", help="show logs on stderr")


async def run(options: argparse.Namespace) -> int:
    """Serve one editor until it disconnects, then exit within a time limit.

    Raises:
        SettingsError: The settings can't be used, or the protocol's library is not installed.
    """
    if find_spec("acp") is None:
        raise SettingsError(MISSING_PACKAGE)
    home = config.home_directory()
    start_logs(home, is_verbose=options.verbose)
    _redirect_library_logs()
    limits = config.load(home, config.workspace()).limits
    out = await _claim_stdout()

    from hark.app.sessions.editor_agents import open_workspace_agents
    from hark.surfaces.acp.agent import EditorServices
    from hark.surfaces.acp.connection import LineReader, serve_editor
    from hark.version import __version__

    incoming = LineReader()
    watchdog = Watchdog(limits.exit_seconds)
    with Signals(watchdog, lambda _: incoming.stop()) as signals:
        await feed_input(incoming)
        async with open_workspace_agents(home, watchdog.set_exit_step) as agents:
            services = EditorServices(agents.commands, agents.create, agents.open, agents.list_sessions)
            await serve_editor(services, incoming, out, __version__, watchdog.arm)
    return signals.code or COMPLETED


def _redirect_library_logs() -> None:
    """Send the protocol library's messages about invalid requests to Hark's log instead of stderr."""
    for handler in (*logging.getLogger("hark").handlers, logging.NullHandler()):
        logging.getLogger().addHandler(handler)


class _FileWriter:
    """Writes the output to a regular file, which never blocks."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        """Write the data immediately."""
        self._file.write(data)

    async def drain(self) -> None:
        """Return immediately, since a file always has room."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    async def wait_closed(self) -> None:
        """Return immediately, since `close` is synchronous."""


async def _claim_stdout() -> asyncio.StreamWriter | _FileWriter:
    """Reserve standard output for the protocol. All other output goes to stderr."""
    descriptor = os.dup(1)
    with suppress(OSError):
        os.dup2(2, 1)
    sys.stdout = sys.stderr
    file = os.fdopen(descriptor, "wb", buffering=0)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return _FileWriter(file)
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: protocol, file)
    return asyncio.StreamWriter(transport, protocol, None, loop)
