"""`hark send`: sends a message to a session, whichever process owns it."""

import argparse
from typing import Any

from hark.app.sessions.remote_session import RemoteSession
from hark.app.shutdown import COMPLETED, FAILED
from hark.app.slash.command_table import help_text
from hark.app.slash.meaning import meaning_of
from hark.cli.io.printing import print_error, print_json
from hark.cli.open_store import CLOCK, open_store
from hark.cli.queue import queue_command
from hark.cli.stop import stop_session
from hark.protocol.commands import Delivery, Say
from hark.protocol.meaning import CommandMeaning, MessageMeaning, StopMeaning
from hark.protocol.receipts import ReceiptState

SAVED_FOR_RESTART = "The gateway is stopping. The message is saved and runs when the gateway is started again."
NEEDS_OPEN_SESSION = (
    "/{} can't be run by `hark send`: it needs the process that has the session open. Run it there: in the terminal "
    "(hark -r {}), in its chat, on the page or over the API. Nothing was sent."
)
_QUEUE_ACTIONS = {"drop": "withdraw", "to": "move", "edit": "edit"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("session")
    parser.add_argument("text")
    parser.add_argument("--delivery", choices=("interrupt", "steer", "queue"))
    parser.add_argument("--id", default="", help="an id for the message; a repeated id is ignored")


async def run(options: argparse.Namespace) -> int:
    """Send a message to a session and print its receipt. A slash command is executed instead."""
    from hark.app.settings import config  # imports the type of every setting, which --help doesn't need

    settings = config.load_here()
    text, delivery = options.text, Delivery(options.delivery) if options.delivery else settings.delivery.default
    async with open_store() as store:
        remote = RemoteSession(options.session, store)
        meaning = meaning_of(text)
        if isinstance(meaning, CommandMeaning | StopMeaning):
            print_json(await _run_command(remote, options.session, meaning))
            return COMPLETED
        assert isinstance(meaning, MessageMeaning)  # no answer rule was given
        receipt = await remote.say(
            Say(options.id or CLOCK.new_id(), meaning.text, meaning.delivery or delivery), settings.limits
        )
        is_saved_for_restart = receipt.state is ReceiptState.QUEUED and await remote.is_draining()
    print_json(receipt)
    if receipt.state is ReceiptState.REFUSED:
        print_error(receipt.reason or "The queue is full.")
        return FAILED
    if is_saved_for_restart:
        print_error(SAVED_FOR_RESTART)
    return COMPLETED


async def _run_command(remote: RemoteSession, session: str, command: CommandMeaning | StopMeaning) -> dict[str, Any]:
    """Run a slash command that `hark send` can run without opening the session. Return the data to print.

    Raises:
        ValueError: The command can't run here. The message says why, and where it can run.
        StoreError: The session's owner is alive but does not answer.
    """
    if isinstance(command, StopMeaning):
        return await stop_session(remote, session)
    match command.name, command.arguments.split(None, 2):
        case "help", _:
            return {"notice": help_text()}
        case "queue", []:
            return {"queue": await remote.queue()}
        case "queue", [number, ("drop" | "to" | "edit") as action, *rest]:
            await _change_queue(remote, int(number), action, "".join(rest))
            return {"queue": await remote.queue()}
        case _:
            raise ValueError(NEEDS_OPEN_SESSION.format(command.name, session))


async def _change_queue(remote: RemoteSession, number: int, action: str, detail: str) -> None:
    queued = await remote.queue()
    if not 1 <= number <= len(queued):
        raise ValueError(f"no message {number} in the queue ({len(queued)} queued)")
    command = queue_command(_QUEUE_ACTIONS[action], queued[number - 1].id, detail)
    if command is None:
        raise ValueError("incomplete command; use /queue N to M or /queue N edit TEXT")
    if (refusal := await remote.change_queue(command)) is not None:
        raise ValueError(refusal.message)
