"""`hark send`: put a message into a session, whichever process owns it."""

import argparse
from typing import Any

from hark.app.sessions.remote_session import Caller
from hark.app.shutdown import COMPLETED
from hark.app.slash.meaning import meaning_of
from hark.app.slash.table import help_text
from hark.cli.io.printing import print_error, print_json
from hark.cli.open_store import CLOCK, opened_store
from hark.cli.queue import queue_command
from hark.cli.stop import stop
from hark.protocol.commands import Delivery, Say
from hark.protocol.meaning import CommandMeaning, MessageMeaning, StopMeaning
from hark.protocol.receipts import ReceiptState

FOR_LATER = "The gateway is stopping. The message is kept, and runs when it is started again."
ELSEWHERE = (
    "/{} can't be run by `hark send`: it needs the process that has the session open. Say it there: in the terminal "
    "(hark -r {}), in its chat, on the page or over the API. Nothing was sent."
)
_QUEUE_ACTIONS = {"drop": "withdraw", "to": "move", "edit": "edit"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("session")
    parser.add_argument("text")
    parser.add_argument("--delivery", choices=("interrupt", "steer", "queue"))
    parser.add_argument("--id", default="", help="a name for the message: the same one is taken once")


async def run(options: argparse.Namespace) -> int:
    """Put a message into a session and print its receipt. One that is a slash command is that command."""
    from hark.app.settings import config  # it loads the type of every setting: --help needs none

    settings = config.load_here()
    text, delivery = options.text, Delivery(options.delivery) if options.delivery else settings.delivery.default
    async with opened_store() as store:
        caller = Caller(options.session, store)
        meaning = meaning_of(text)
        if isinstance(meaning, CommandMeaning | StopMeaning):
            print_json(await _carry_out(caller, options.session, meaning))
            return COMPLETED
        prefix = meaning.delivery if isinstance(meaning, MessageMeaning) else None
        receipt = await caller.say(Say(options.id or CLOCK.new_id(), meaning.text, prefix or delivery))
        is_for_later = receipt.state is ReceiptState.QUEUED and await caller.is_draining()
    print_json(receipt)
    if is_for_later:
        print_error(FOR_LATER)
    return COMPLETED


async def _carry_out(caller: Caller, session: str, command: CommandMeaning | StopMeaning) -> dict[str, Any]:
    """Carry out a slash command that needs no process which has the session open; return what is printed of it.

    Raises:
        ValueError: It can't be; the text says why, and where it can.
        StoreError: The session's owner lives but does not answer.
    """
    if isinstance(command, StopMeaning):
        return await stop(caller, session)
    match command.name, command.words.split(None, 2):
        case "help", _:
            return {"notice": help_text()}
        case "queue", []:
            return {"queue": await caller.queue()}
        case "queue", [number, ("drop" | "to" | "edit") as action, *rest]:
            await _change_queue(caller, int(number), action, "".join(rest))
            return {"queue": await caller.queue()}
        case _:
            raise ValueError(ELSEWHERE.format(command.name, session))


async def _change_queue(caller: Caller, number: int, action: str, detail: str) -> None:
    waiting = await caller.queue()
    if not 1 <= number <= len(waiting):
        raise ValueError(f"there is no message {number} in the queue; it has {len(waiting)}")
    command = queue_command(_QUEUE_ACTIONS[action], waiting[number - 1].id, detail)
    if command is None:
        raise ValueError(f"say more: /queue N {action} ...")
    if (refusal := await caller.change(command)) is not None:
        raise ValueError(refusal.message)
