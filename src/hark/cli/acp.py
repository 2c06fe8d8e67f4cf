"""`hark acp`: an agent for editors, on stdin and stdout, with a way out that is always bounded."""

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
from hark.cli.io.standard_input import read_input

NEEDED = "hark acp needs the package agent-client-protocol. Install it: pip install 'hark-agent[acp]'."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--verbose", action="store_true", help="show logs on stderr")


async def run(options: argparse.Namespace) -> int:
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
    out = await _own_output()

    from hark.app.sessions.editor_agents import opened_workplaces
    from hark.surfaces.acp.agent import EditorServices
    from hark.surfaces.acp.serve import Incoming, serve_editor
    from hark.version import __version__

    incoming = Incoming()
    watchdog = Watchdog(limits.exit_seconds)
    signals = Signals(watchdog, lambda _: incoming.end())
    signals.listen()
    await read_input(incoming)
    async with opened_workplaces(home, watchdog.waits_for) as places:
        services = EditorServices(places.commands, places.create, places.open, places.listed)
        await serve_editor(services, incoming, out, __version__, watchdog.arm)
    return signals.code or COMPLETED


def _log_library() -> None:
    """Have what the protocol's library says of broken requests in our log: it would go to stderr."""
    for handler in (*logging.getLogger("hark").handlers, logging.NullHandler()):
        logging.getLogger().addHandler(handler)


class _FileOut:
    """A file as the way out: it never makes anyone wait."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        """Write at once."""
        self._file.write(data)

    async def drain(self) -> None:
        """There is always room."""

    def close(self) -> None:
        """Let go."""
        self._file.close()

    async def wait_closed(self) -> None:
        """It is let go at once."""


async def _own_output() -> asyncio.StreamWriter | _FileOut:
    """Take standard output; what others print from now on goes to stderr."""
    descriptor = os.dup(1)
    with suppress(OSError):
        os.dup2(2, 1)
    sys.stdout = sys.stderr
    file = os.fdopen(descriptor, "wb", buffering=0)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return _FileOut(file)
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: protocol, file)
    return asyncio.StreamWriter(transport, protocol, None, loop)
