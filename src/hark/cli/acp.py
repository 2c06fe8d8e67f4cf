"""`hark acp`: an agent for editors, on stdin and stdout, with a way out that is always bounded."""

import argparse
import logging
from importlib.util import find_spec

from hark.app.logs import start_logs
from hark.app.settings import SettingsError, config
from hark.app.shutdown import COMPLETED, Signals, Watchdog
from hark.cli.io.standard_input import read_input
from hark.cli.io.standard_output import own_output

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
    out = await own_output()

    from hark.app.sessions.editor_agents import opened_workplaces
    from hark.surfaces.acp.serve import Incoming, serve_editor
    from hark.version import __version__

    incoming = Incoming()
    watchdog = Watchdog(limits.exit_seconds)
    signals = Signals(watchdog, lambda _: incoming.end())
    signals.listen()
    await read_input(incoming)
    async with opened_workplaces(home, watchdog.waits_for) as places:
        await serve_editor(places, incoming, out, __version__, watchdog.arm)
    return signals.code or COMPLETED


def _log_library() -> None:
    """Have what the protocol's library says of broken requests in our log: it would go to stderr."""
    for handler in (*logging.getLogger("hark").handlers, logging.NullHandler()):
        logging.getLogger().addHandler(handler)
