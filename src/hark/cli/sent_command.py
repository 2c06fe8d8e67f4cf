"""A slash command in `hark send`: what can be done with a session that another process may have open."""

from typing import Any

import msgspec

from hark.app.clock import SystemClock
from hark.app.sessions.remote_session import Caller
from hark.app.slash.table import help_text
from hark.protocol.commands import Edit, Interrupt, Move, QueueCommand, Withdraw
from hark.protocol.meaning import CommandMeaning, StopMeaning

_CLOCK = SystemClock()
ELSEWHERE = (
    "/{} can't be run by `hark send`: it needs the process that has the session open. Say it there: in the terminal "
    "(hark -r {}), in its chat, on the page or over the API. Nothing was sent."
)


async def carry_out(caller: Caller, session: str, command: CommandMeaning | StopMeaning) -> dict[str, Any]:
    """Carry a command out; return what is printed of it.

    Raises:
        ValueError: It can't be; the text says why, and where it can.
        StoreError: The session's owner lives but does not answer.
    """
    if isinstance(command, StopMeaning):
        return await stopped(caller, session)
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


async def stopped(caller: Caller, session: str) -> dict[str, Any]:
    """Stop what runs in a session; return what is printed of it."""
    settled = await caller.interrupt(Interrupt(_CLOCK.new_id(), "user"))
    return {"session": session, **(msgspec.to_builtins(settled) if settled else {"turn": None, "outcome": None})}


async def _change_queue(caller: Caller, number: int, action: str, detail: str) -> None:
    waiting = await caller.queue()
    if not 1 <= number <= len(waiting):
        raise ValueError(f"there is no message {number} in the queue; it has {len(waiting)}")
    refusal = await caller.change(_queue_change(waiting[number - 1].id, action, detail))
    if refusal is not None:
        raise ValueError(refusal.message)


def _queue_change(message: str, action: str, detail: str) -> QueueCommand:
    match action:
        case "drop":
            return Withdraw(_CLOCK.new_id(), message)
        case "to" if detail.isdecimal():
            return Move(_CLOCK.new_id(), message, int(detail))
        case "edit" if detail:
            return Edit(_CLOCK.new_id(), message, detail)
        case _:
            raise ValueError(f"say more: /queue N {action} ...")
