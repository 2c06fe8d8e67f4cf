"""The input of a decision besides the state and the command."""

from dataclasses import dataclass, field

from hark.protocol.commands import Command
from hark.protocol.records import CommandRefused
from hark.protocol.rules import Rules


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """A decision's input besides state and command: the time, the session, the inbox entry, and the rules."""

    at: float
    session: str
    inbox: int = 0
    rules: Rules = field(default_factory=Rules)


def refuse(command: Command, code: str, message: str, context: DecisionContext) -> CommandRefused:
    """Return the record that refuses a command."""
    return CommandRefused(command=command.id, code=code, message=message, inbox=context.inbox, at=context.at)
