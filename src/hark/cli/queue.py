"""`hark queue`: lists or changes the queued messages of a session, whichever process owns it."""

import argparse

from hark.app.sessions.remote_session import RemoteSession
from hark.app.shutdown import COMPLETED, FAILED
from hark.cli.io.printing import print_error, print_json
from hark.cli.open_store import CLOCK, open_store
from hark.protocol.commands import Edit, Move, QueueCommand, Withdraw

_MISSING_VALUE = {
    "edit": "missing text: hark queue SESSION edit ID TEXT",
    "move": "missing or invalid position (from 1): hark queue SESSION move ID POSITION",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("session")
    parser.add_argument("action", nargs="?", choices=("list", "edit", "move", "withdraw"), default="list")
    parser.add_argument("message", nargs="?", help="the message's id")
    parser.add_argument("value", nargs="?", help="edit: the new text; move: the new position, from 1")


async def run(options: argparse.Namespace) -> int:
    """List the queued messages, or change one."""
    async with open_store() as store:
        remote = RemoteSession(options.session, store)
        if options.action == "list":
            print_json({"queue": await remote.queue()})
            return COMPLETED
        if not options.message:
            raise ValueError("missing message id; `hark queue SESSION list` shows the ids")
        command = queue_command(options.action, options.message, options.value)
        if command is None:
            raise ValueError(_MISSING_VALUE[options.action])
        refusal = await remote.change_queue(command)
    if refusal is None:
        return COMPLETED
    print_error(refusal.message)
    return FAILED


def queue_command(action: str, message: str, value: str | None) -> QueueCommand | None:
    """Return the command for `edit`, `move` or `withdraw`, or None if the new text or position is missing."""
    match action:
        case "withdraw":
            return Withdraw(CLOCK.new_id(), message)
        case "move" if value and value.isdecimal():
            return Move(CLOCK.new_id(), message, int(value))
        case "edit" if value:
            return Edit(CLOCK.new_id(), message, value)
        case _:
            return None
