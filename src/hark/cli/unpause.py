"""`hark unpause`: ends the pause of all sessions. Messages that were stored in the meantime run."""

import argparse

from hark.app.global_pause import PauseFile
from hark.app.settings import home_directory
from hark.app.shutdown import COMPLETED
from hark.cli.io.printing import print_line
from hark.cli.open_store import open_store
from hark.engine.session.router import UNPAUSED


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: none."""


async def run(options: argparse.Namespace) -> int:
    """End the pause."""
    file = PauseFile(home_directory())
    if not file.exists:
        print_line("Hark is not paused.")
        return COMPLETED
    async with open_store() as store:
        file.remove()
        await store.bus.wake("")
    print_line(UNPAUSED)
    return COMPLETED
