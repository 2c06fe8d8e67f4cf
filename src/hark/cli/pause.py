"""`hark pause`: pauses all sessions until `hark unpause`, also across restarts."""

import argparse

from hark.app.global_pause import PauseFile
from hark.app.sessions.remote_session import RemoteSession
from hark.app.settings import home_directory
from hark.app.shutdown import COMPLETED
from hark.cli.io.printing import print_line
from hark.cli.open_store import CLOCK, open_store
from hark.engine.session.router import PAUSED
from hark.protocol.commands import PAUSE, Interrupt
from hark.protocol.names import is_listed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--stop", action="store_true", help="stop running turns instead of letting them finish")


async def run(options: argparse.Namespace) -> int:
    """Pause all sessions, and optionally stop the running turns."""
    async with open_store() as store:
        PauseFile(home_directory()).create()
        await store.bus.wake("")
        print_line(PAUSED)
        running = [line.session for line in await store.journal.sessions() if line.summary.is_open]
        running = [session for session in running if is_listed(session)]
        for session in running if options.stop else ():
            settled = await RemoteSession(session, store).interrupt(Interrupt(CLOCK.new_id(), PAUSE))
            if settled is not None:
                print_line(f"Stopped {settled.turn}. /continue in {session} resumes it.")
        if running and not options.stop:
            print_line(f"Running turns finish first: {', '.join(running)}. `hark pause --stop` stops them.")
    return COMPLETED
