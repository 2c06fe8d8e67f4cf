"""`hark stop`: stop the running turn of a session, or of all sessions, whichever process owns them."""

import argparse
from typing import Any

import msgspec

from hark.app.sessions.remote_session import Caller
from hark.app.shutdown import BAD_USAGE, COMPLETED
from hark.cli.io.printing import print_error, print_json
from hark.cli.open_store import CLOCK, opened_store
from hark.protocol.commands import Interrupt


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("session", nargs="?")
    parser.add_argument("--all", action="store_true", help="in every session")


async def run(options: argparse.Namespace) -> int:
    """Stop what runs, in one session or in all."""
    if bool(options.session) == options.all:
        print_error("say which session to stop, or --all")
        return BAD_USAGE
    async with opened_store() as store:
        names = [options.session]
        if options.all:
            names = [line.session for line in await store.journal.sessions() if line.summary.is_open]
        for name in names:
            print_json(await stop(Caller(name, store), name))
    return COMPLETED


async def stop(caller: Caller, session: str) -> dict[str, Any]:
    """Stop the running turn of a session; return what is printed of it.

    Raises:
        StoreError: The session's owner lives but does not answer.
    """
    settled = await caller.interrupt(Interrupt(CLOCK.new_id(), "user"))
    return {"session": session, **(msgspec.to_builtins(settled) if settled else {"turn": None, "outcome": None})}
