"""What goes in: a closed union of commands, each with an id that makes it idempotent."""

from enum import StrEnum

from msgspec import Struct

from hark.protocol.messages import Attachment
from hark.protocol.rules import ApprovalMode


class Delivery(StrEnum):
    """What a message does to a running turn."""

    INTERRUPT = "interrupt"
    STEER = "steer"
    QUEUE = "queue"


class Shown(Struct, frozen=True):
    """How many characters of a turn's running reply its person had seen, or heard."""

    turn: str
    characters: int


class Say(Struct, frozen=True, omit_defaults=True, tag="say"):
    """A person's message. If it interrupts the turn that `shown` names, no more than that of its reply is kept."""

    id: str
    text: str
    delivery: Delivery = Delivery.INTERRUPT
    author: str = ""
    attachments: tuple[Attachment, ...] = ()
    shown: Shown | None = None


class Interrupt(Struct, frozen=True, omit_defaults=True, tag="interrupt"):
    """End the running turn and keep the session.

    With `turn`, only that one. `shown` is how many characters of the running reply the person had seen.
    """

    id: str
    source: str
    turn: str = ""
    shown: int | None = None


class Edit(Struct, frozen=True, omit_defaults=True, tag="edit"):
    """Change the text of a message that still waits."""

    id: str
    message: str
    text: str


class Move(Struct, frozen=True, omit_defaults=True, tag="move"):
    """Put a message that still waits at another position, from 1."""

    id: str
    message: str
    position: int


class Withdraw(Struct, frozen=True, omit_defaults=True, tag="withdraw"):
    """Take a message that still waits out of the queue."""

    id: str
    message: str


class Answer(Struct, frozen=True, omit_defaults=True, tag="answer"):
    """A person's reply to a question of the running turn."""

    id: str
    question: str
    text: str


class ChooseRoute(Struct, frozen=True, omit_defaults=True, tag="choose_route"):
    """Have a route serve this session first, from the next turn on; "" for the usual order."""

    id: str
    route: str


class Compact(Struct, frozen=True, omit_defaults=True, tag="compact"):
    """Put a summary in the place of what is old, in a turn of its own."""

    id: str
    instructions: str = ""


class ChooseMode(Struct, frozen=True, omit_defaults=True, tag="choose_mode"):
    """Ask more or less often in this session, from the next call on; None for what the settings say."""

    id: str
    mode: ApprovalMode | None


class Rewind(Struct, frozen=True, omit_defaults=True, tag="rewind"):
    """Go back to before a turn: the model forgets it and all that came after it. "" forgets everything."""

    id: str
    turn: str = ""


class Remark(Struct, frozen=True, omit_defaults=True, tag="remark"):
    """Tell the model something about the conversation itself, such as files that were put back."""

    id: str
    text: str


QueueCommand = Edit | Move | Withdraw
Change = QueueCommand | ChooseRoute | ChooseMode | Compact | Rewind | Remark
Command = Say | Interrupt | Answer | Change
