"""What the journal keeps: a session's state is the fold of these."""

from msgspec import Struct, field

from hark.protocol.commands import Delivery
from hark.protocol.messages import AssistantMessage, CallResult, UserMessage
from hark.protocol.outcomes import Outcome, Timings, Usage
from hark.protocol.rules import ApprovalMode


class Record(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What every record has: `inbox` is the entry that it answers, 0 for none; `at` is Unix time."""

    inbox: int = 0
    at: float = 0.0


class Queued(Record, frozen=True, omit_defaults=True, kw_only=True, tag="queued"):
    """A message waits. With `turn`, it is meant for that turn; `is_first` puts it before what is queued."""

    message: UserMessage
    delivery: Delivery
    turn: str = ""
    is_first: bool = False


class Held(Record, frozen=True, omit_defaults=True, kw_only=True, tag="held"):
    """A stop came while messages waited: they stay until the next message."""


class Released(Record, frozen=True, omit_defaults=True, kw_only=True, tag="released"):
    """What was held may run."""


class Edited(Record, frozen=True, omit_defaults=True, kw_only=True, tag="edited"):
    """A waiting message has another text."""

    message: str
    text: str


class Moved(Record, frozen=True, omit_defaults=True, kw_only=True, tag="moved"):
    """A waiting message has another position, from 1."""

    message: str
    position: int


class Withdrawn(Record, frozen=True, omit_defaults=True, kw_only=True, tag="withdrawn"):
    """A waiting message will not run; its text is kept here for its person."""

    message: str
    text: str
    reason: str


class Refused(Record, frozen=True, omit_defaults=True, kw_only=True, tag="refused"):
    """A command had no effect; it is kept so that its sender in another process learns why."""

    command: str
    code: str
    message: str


class Handled(Record, frozen=True, omit_defaults=True, kw_only=True, tag="handled"):
    """A command that leaves no other record was carried out; `turn` is the turn that it met."""

    command: str
    turn: str = ""


class TurnStarted(Record, frozen=True, omit_defaults=True, kw_only=True, tag="turn.started"):
    """A turn took these messages as its prompt; or, with `task`, does something else that takes time: "compact"."""

    turn: str
    messages: tuple[UserMessage, ...]
    task: str = ""
    instructions: str = ""


class Steered(Record, frozen=True, omit_defaults=True, kw_only=True, tag="steered"):
    """A running turn took these messages at the start of a step."""

    turn: str
    step: int
    messages: tuple[UserMessage, ...]


class Replied(Record, frozen=True, omit_defaults=True, kw_only=True, tag="replied"):
    """The model's reply of one step, whole or cut."""

    turn: str
    step: int
    message: AssistantMessage
    route: str = ""
    usage: Usage = field(default_factory=Usage)


class Progress(Record, frozen=True, omit_defaults=True, kw_only=True, tag="progress"):
    """More of the running reply's text, kept now and then so that a crash does not lose what a person saw.

    `is_first`: the text of a new stream, which takes the place of what a broken one had said.
    """

    turn: str
    step: int
    text: str
    is_first: bool = False


class Compacted(Record, frozen=True, omit_defaults=True, kw_only=True, tag="compacted"):
    """The first `count` messages of the transcript became a summary; the person's last ones among them stay."""

    turn: str
    summary: str
    count: int


class RouteChosen(Record, frozen=True, omit_defaults=True, kw_only=True, tag="route.chosen"):
    """The person wants this route first, from the next turn on; "" for the usual order."""

    route: str


class ModeChosen(Record, frozen=True, omit_defaults=True, kw_only=True, tag="mode.chosen"):
    """The person wants to be asked more or less often in this session; None for what the settings say."""

    mode: ApprovalMode | None = None


class Granted(Record, frozen=True, omit_defaults=True, kw_only=True, tag="granted"):
    """The person allowed this for the rest of the session: a tool's name, or `NAME:` and an exact command."""

    grant: str


class Rewound(Record, frozen=True, omit_defaults=True, kw_only=True, tag="rewound"):
    """The transcript went back to before this turn; "" to its beginning. What was said stays in the journal."""

    turn: str = ""


class Remarked(Record, frozen=True, omit_defaults=True, kw_only=True, tag="remarked"):
    """The model is told something about the conversation itself."""

    text: str


class CallStarted(Record, frozen=True, omit_defaults=True, kw_only=True, tag="call.started"):
    """Durable before the tool starts: from here on a crash leaves the effect unknown."""

    turn: str
    call: str


class CallEnded(Record, frozen=True, omit_defaults=True, kw_only=True, tag="call.ended"):
    """A call has its result."""

    turn: str
    result: CallResult


class TurnEnded(Record, frozen=True, omit_defaults=True, kw_only=True, tag="turn.ended"):
    """A turn is over."""

    turn: str
    outcome: Outcome
    timings: Timings = field(default_factory=Timings)
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None


class Quarantined(Record, frozen=True, omit_defaults=True, kw_only=True, tag="quarantined"):
    """What abandoned work said after its turn was over: shown to the person, never to the model."""

    turn: str
    call: str
    name: str
    text: str


AnyRecord = (
    Queued
    | Held
    | Released
    | Edited
    | Moved
    | Withdrawn
    | Refused
    | Handled
    | TurnStarted
    | Steered
    | Replied
    | Progress
    | Compacted
    | RouteChosen
    | ModeChosen
    | Granted
    | Rewound
    | Remarked
    | CallStarted
    | CallEnded
    | TurnEnded
    | Quarantined
)
