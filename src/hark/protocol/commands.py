"""Commands: the requests that a session accepts. Each command has an id that makes it idempotent."""

from enum import StrEnum

from msgspec import Struct

from hark.protocol.messages import Attachment
from hark.protocol.outcomes import Usage
from hark.protocol.rules import ApprovalMode

# Sources of interrupts that a user's message causes, as opposed to a stop.
NEW_MESSAGE, VOICE_MESSAGE = "new message", "voice"
RESET, PAUSE = "reset", "pause"
# Sources of interrupts by the end of the program.
CRASH, RESTART, SHUTDOWN = "crash", "restart", "shutdown"
PROGRAM_ENDS = (CRASH, RESTART, SHUTDOWN)


class Delivery(StrEnum):
    """How a message is delivered while a turn is running."""

    INTERRUPT = "interrupt"
    STEER = "steer"
    QUEUE = "queue"


class ShownText(Struct, frozen=True):
    """The number of characters of a turn's partial reply that the user had seen or heard."""

    turn: str
    characters: int


class Say(Struct, frozen=True, omit_defaults=True, tag="say"):
    """A user's message. If it interrupts the turn named in `shown`, only the characters counted there are kept."""

    id: str
    text: str
    delivery: Delivery = Delivery.INTERRUPT
    author: str = ""
    attachments: tuple[Attachment, ...] = ()
    shown: ShownText | None = None


class Interrupt(Struct, frozen=True, omit_defaults=True, tag="interrupt"):
    """Stop the running turn; the session continues.

    With `turn`, stop only that turn. `shown` is the number of characters of the partial reply that the user had seen.
    """

    id: str
    source: str
    turn: str = ""
    shown: int | None = None

    @property
    def is_stop(self) -> bool:
        """Whether this is a stop, rather than the effect of a message."""
        return self.source not in (NEW_MESSAGE, VOICE_MESSAGE)


class Edit(Struct, frozen=True, omit_defaults=True, tag="edit"):
    """Change the text of a queued message."""

    id: str
    message: str
    text: str


class Move(Struct, frozen=True, omit_defaults=True, tag="move"):
    """Move a queued message to another position, counted from 1."""

    id: str
    message: str
    position: int


class Withdraw(Struct, frozen=True, omit_defaults=True, tag="withdraw"):
    """Remove a message from the queue."""

    id: str
    message: str


class Answer(Struct, frozen=True, omit_defaults=True, tag="answer"):
    """A user's answer to a question from the running turn."""

    id: str
    question: str
    text: str


class ChooseRoute(Struct, frozen=True, omit_defaults=True, tag="choose_route"):
    """Try this route first in this session, starting with the next turn; "" for the default order."""

    id: str
    route: str


class Compact(Struct, frozen=True, omit_defaults=True, tag="compact"):
    """Replace older messages with a summary, in a separate turn."""

    id: str
    instructions: str = ""


class ChooseMode(Struct, frozen=True, omit_defaults=True, tag="choose_mode"):
    """Set this session's approval mode, starting with the next call; None for the mode in the settings."""

    id: str
    mode: ApprovalMode | None


class Rewind(Struct, frozen=True, omit_defaults=True, tag="rewind"):
    """Remove a turn and all later turns from the transcript. With "", clear the transcript."""

    id: str
    turn: str = ""


class AddNote(Struct, frozen=True, omit_defaults=True, tag="remark"):
    """Add a note about the conversation to the transcript, for example about restored files."""

    id: str
    text: str


class Reset(Struct, frozen=True, omit_defaults=True, tag="reset"):
    """Stop the turn and all other work, withdraw all queued messages, and clear the conversation, grants and modes.

    `keep` names the background processes that continue.
    """

    id: str
    keep: tuple[str, ...] = ()


class UndoReset(Struct, frozen=True, omit_defaults=True, tag="undo_reset"):
    """Restore the conversation from before the last reset. Later messages stay, after the restored ones."""

    id: str


class PauseTurn(Struct, frozen=True, omit_defaults=True, tag="pause"):
    """End the running turn after its current step, and hold the queue."""

    id: str


class StartWork(Struct, frozen=True, omit_defaults=True, tag="work.start"):
    """Record background work that outlives its turn. `work` is its id in this session; `name` is for the user."""

    id: str
    work: str
    name: str


class EndWork(Struct, frozen=True, omit_defaults=True, tag="work.end"):
    """Record the end of background work. `report` is for the model; "" if it already knows.

    `wakes`: the report starts a turn; otherwise it is delivered with the next turn.
    """

    id: str
    work: str
    name: str
    report: str = ""
    wakes: bool = True


class RecordUsage(Struct, frozen=True, omit_defaults=True, tag="record_aside"):
    """Count the usage of a side question, or of a turn of a `child` session. Any process may send this."""

    id: str
    route: str
    usage: Usage
    cost: float | None = None
    child: str = ""


QueueCommand = Edit | Move | Withdraw
TurnChange = Reset | UndoReset | PauseTurn
ChangeCommand = (
    QueueCommand
    | TurnChange
    | ChooseRoute
    | ChooseMode
    | Compact
    | Rewind
    | AddNote
    | RecordUsage
    | StartWork
    | EndWork
)
Command = Say | Interrupt | Answer | ChangeCommand
