"""`hark stop`: stops the running turn of a session, or of all sessions, whichever process owns them."""

import argparse
from typing import Any

import msgspec

from hark.app.sessions.remote_session import RemoteSession
from hark.app.shutdown import BAD_USAGE, COMPLETED
from hark.cli.io.printing import print_error, print_json
from hark.cli.open_store import CLOCK, open_store
from hark.protocol.commands import Interrupt


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("session", nargs="?")
    parser.add_argument("--all", action="store_true", help="stop the turns of all sessions")


async def run(options: argparse.Namespace) -> int:
    """Stop the running turn of one session, or of all sessions."""
    if bool(options.session) == options.all:
        print_error("name the session to stop, or use --all")
        return BAD_USAGE
    async with open_store() as store:
        names = [options.session]
        if options.all:
            names = [line.session for line in await store.journal.sessions() if line.summary.is_open]
        for name in names:
            print_json(await stop_session(RemoteSession(name, store), name))
    return COMPLETED


async def stop_session(remote: RemoteSession, session: str) -> dict[str, Any]:
    """Stop the running turn of a session. Return the data to print.

    Raises:
        StoreError: The session's owner is alive but does not answer.
    """
    settled = await remote.interrupt(Interrupt(CLOCK.new_id(), "user"))
    return {"session": session, **(msgspec.to_builtins(settled) if settled else {"turn": None, "outcome": None})}
