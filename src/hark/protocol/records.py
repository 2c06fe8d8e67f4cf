"""Journal records. Folding them gives the session's state."""

from msgspec import Struct, field

from hark.protocol.commands import Delivery
from hark.protocol.messages import AssistantMessage, CallResult, UserMessage
from hark.protocol.outcomes import Outcome, Timings, Usage
from hark.protocol.rules import ApprovalMode


class Record(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The base of all records. `inbox` is the entry that caused the record, 0 for none; `at` is Unix time."""

    inbox: int = 0
    at: float = 0.0


class Queued(Record, frozen=True, omit_defaults=True, kw_only=True, tag="queued"):
    """A message was queued. `turn` is the turn it is meant for; `is_first` puts it before the queued messages."""

    message: UserMessage
    delivery: Delivery
    turn: str = ""
    is_first: bool = False


class QueueHeld(Record, frozen=True, omit_defaults=True, kw_only=True, tag="held"):
    """A stop put the queue on hold until the next message."""


class QueueReleased(Record, frozen=True, omit_defaults=True, kw_only=True, tag="released"):
    """The held queue was released."""


class Edited(Record, frozen=True, omit_defaults=True, kw_only=True, tag="edited"):
    """The text of a queued message was changed."""

    message: str
    text: str


class Moved(Record, frozen=True, omit_defaults=True, kw_only=True, tag="moved"):
    """A queued message was moved to another position, counted from 1."""

    message: str
    position: int


class Withdrawn(Record, frozen=True, omit_defaults=True, kw_only=True, tag="withdrawn"):
    """A queued message was withdrawn and will not run. Its text is stored here so that the user can get it back."""

    message: str
    text: str
    reason: str


class CommandRefused(Record, frozen=True, omit_defaults=True, kw_only=True, tag="refused"):
    """A command was refused and had no effect. A sender in another process reads the reason from this record."""

    command: str
    code: str
    message: str


class CommandHandled(Record, frozen=True, omit_defaults=True, kw_only=True, tag="handled"):
    """A command that leaves no other record was executed. `turn` is the turn that it affected."""

    command: str
    turn: str = ""


class TurnStarted(Record, frozen=True, omit_defaults=True, kw_only=True, tag="turn.started"):
    """A turn started with these messages as its prompt, or with a `task` instead, such as "compact"."""

    turn: str
    messages: tuple[UserMessage, ...]
    task: str = ""
    instructions: str = ""


class Steered(Record, frozen=True, omit_defaults=True, kw_only=True, tag="steered"):
    """A running turn accepted these steering messages at the start of a step."""

    turn: str
    step: int
    messages: tuple[UserMessage, ...]


class Replied(Record, frozen=True, omit_defaults=True, kw_only=True, tag="replied"):
    """The model's reply in one step, complete or partial."""

    turn: str
    step: int
    message: AssistantMessage
    route: str = ""
    usage: Usage = field(default_factory=Usage)


class ReplyTextSaved(Record, frozen=True, omit_defaults=True, kw_only=True, tag="progress"):
    """More text of the partial reply, saved about once a second so that a crash loses little of it.

    `is_first`: the text starts a new stream and replaces the text of a broken stream.
    """

    turn: str
    step: int
    text: str
    is_first: bool = False


class Compacted(Record, frozen=True, omit_defaults=True, kw_only=True, tag="compacted"):
    """A summary replaced the first `count` messages of the transcript, except the user's last messages among them."""

    turn: str
    summary: str
    count: int


class RouteChosen(Record, frozen=True, omit_defaults=True, kw_only=True, tag="route.chosen"):
    """The user chose the route to try first, starting with the next turn; "" for the default order."""

    route: str


class ModeChosen(Record, frozen=True, omit_defaults=True, kw_only=True, tag="mode.chosen"):
    """The user chose this session's approval mode; None for the mode in the settings."""

    mode: ApprovalMode | None = None


class Granted(Record, frozen=True, omit_defaults=True, kw_only=True, tag="granted"):
    """The user allowed a tool for the rest of the session. `grant` is `NAME`, or `NAME:` and an exact command."""

    grant: str


class Rewound(Record, frozen=True, omit_defaults=True, kw_only=True, tag="rewound"):
    """The conversation was rewound to before `turn`, or to its start if that is "". The journal keeps all messages."""

    turn: str = ""


class NoteAdded(Record, frozen=True, omit_defaults=True, kw_only=True, tag="remarked"):
    """A note about the conversation was added to the transcript."""

    text: str


class CallStarted(Record, frozen=True, omit_defaults=True, kw_only=True, tag="call.started"):
    """A call is about to start. The record is durable before the tool runs; after a crash the effect is unknown."""

    turn: str
    call: str


class CallEnded(Record, frozen=True, omit_defaults=True, kw_only=True, tag="call.ended"):
    """A call ended with this result."""

    turn: str
    result: CallResult


class TurnEnded(Record, frozen=True, omit_defaults=True, kw_only=True, tag="turn.ended"):
    """A turn ended. A turn with a `task` stays outside the conversation, so its end adds no note for the model."""

    turn: str
    outcome: Outcome
    timings: Timings = field(default_factory=Timings)
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    task: str = ""


class Quarantined(Record, frozen=True, omit_defaults=True, kw_only=True, tag="quarantined"):
    """Output that abandoned work produced after its turn ended. It is shown to the user but not to the model."""

    turn: str
    call: str
    name: str
    text: str


class PauseRequested(Record, frozen=True, omit_defaults=True, kw_only=True, tag="pause.requested"):
    """The user asked to pause a turn after its current step."""

    turn: str


class ResetRequested(Record, frozen=True, omit_defaults=True, kw_only=True, tag="reset.requested"):
    """The user reset the session while a turn was running. A `SessionReset` follows when the turn has ended."""

    turn: str


class SessionReset(Record, frozen=True, omit_defaults=True, kw_only=True, tag="session.reset"):
    """The conversation, the grants and the modes were cleared. `reason` is set if Hark did this automatically."""

    reason: str = ""


class ResetUndone(Record, frozen=True, omit_defaults=True, kw_only=True, tag="reset.undone"):
    """The conversation from before the last reset was restored."""


class WorkStarted(Record, frozen=True, omit_defaults=True, kw_only=True, tag="work.started"):
    """Background work started. A child that continues after its call has no such record: its call's result names it."""

    work: str
    name: str


class WorkEnded(Record, frozen=True, omit_defaults=True, kw_only=True, tag="work.ended"):
    """Background work ended. The report is delivered with the next turn, or starts a turn if `wakes`.

    Without a report, the model already knows that the work ended, and a pending report is dropped.
    """

    work: str
    report: UserMessage | None = None
    wakes: bool = False


class WakeUpsHeld(Record, frozen=True, omit_defaults=True, kw_only=True, tag="wake_ups.held"):
    """The user stopped the session: no report starts a turn until the user sends a message."""


class UsageRecorded(Record, frozen=True, omit_defaults=True, kw_only=True, tag="aside"):
    """Usage outside of this session's turns: by a side question, or by a turn of the `child` session.

    The transcript doesn't change. For the day's cost, only the child's own journal counts.
    """

    route: str
    usage: Usage
    cost: float | None = None
    child: str = ""


AnyRecord = (
    Queued
    | QueueHeld
    | QueueReleased
    | Edited
    | Moved
    | Withdrawn
    | CommandRefused
    | CommandHandled
    | TurnStarted
    | Steered
    | Replied
    | ReplyTextSaved
    | Compacted
    | RouteChosen
    | ModeChosen
    | Granted
    | Rewound
    | NoteAdded
    | CallStarted
    | CallEnded
    | TurnEnded
    | Quarantined
    | WorkStarted
    | WorkEnded
    | WakeUpsHeld
    | UsageRecorded
    | PauseRequested
    | ResetRequested
    | SessionReset
    | ResetUndone
)
