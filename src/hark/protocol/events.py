"""What comes out: typed events, the same in Python and on the wire."""

from msgspec import Struct, field

from hark.protocol.messages import Effect
from hark.protocol.outcomes import Outcome, Timings, Usage
from hark.protocol.receipts import Receipt
from hark.protocol.tool import QuestionKind


class Event(Struct, frozen=True, tag_field="type"):
    """What every event has: `seq` rises within a session, `at` is Unix time, `turn` is None outside a turn."""

    session: str
    turn: str | None
    seq: int
    at: float

    @property
    def type(self) -> str:
        """The event's name on the wire."""
        return str(self.__struct_config__.tag)


class MessageAccepted(Event, frozen=True, tag="message.accepted"):
    """A message is durable in the inbox."""

    id: str
    text: str
    author: str = ""


class ReceiptChanged(Event, frozen=True, tag="receipt"):
    """A message changed its state."""

    receipt: Receipt


class TurnStart(Event, frozen=True, tag="turn.started"):
    """A turn began with these messages."""

    messages: tuple[str, ...]


class StepStart(Event, frozen=True, tag="step.started"):
    """A step begins: a model call, and the calls that come of it."""

    step: int


class ReplyDelta(Event, frozen=True, tag="reply.delta"):
    """A piece of the reply's text."""

    text: str


class ReplyRestarted(Event, frozen=True, tag="reply.restarted"):
    """The stream broke after visible text: forget the text of this step, it comes again."""

    step: int


class ReasoningDelta(Event, frozen=True, tag="reasoning.delta"):
    """A piece of the model's thinking."""

    text: str


class CallStart(Event, frozen=True, tag="call.started"):
    """A tool starts."""

    call: str
    name: str
    arguments: str


class CallOutput(Event, frozen=True, tag="call.output"):
    """A piece of a running tool's output."""

    call: str
    text: str


class CallEnd(Event, frozen=True, tag="call.ended"):
    """A call has its result."""

    call: str
    name: str
    effect: Effect
    text: str
    is_error: bool = False


class QuestionAsked(Event, frozen=True, tag="question.asked"):
    """The turn waits for a person. An approval names the `call` that it is about."""

    question: str
    text: str
    choices: tuple[str, ...] = ()
    kind: QuestionKind = QuestionKind.QUESTION
    call: str = ""


class QuestionClosed(Event, frozen=True, tag="question.closed"):
    """A question is no longer open: answered, or withdrawn by a stop."""

    question: str
    reason: str


class RouteChanged(Event, frozen=True, tag="route.changed"):
    """Another model serves the turn."""

    route: str
    reason: str


class Notice(Event, frozen=True, tag="notice"):
    """Something that the person should know. A notice with the same `code` replaces the one before it."""

    code: str
    text: str


class TurnEnd(Event, frozen=True, tag="turn.ended"):
    """A turn is over, and durable."""

    outcome: Outcome
    timings: Timings
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None


AnyEvent = (
    MessageAccepted
    | ReceiptChanged
    | TurnStart
    | StepStart
    | ReplyDelta
    | ReplyRestarted
    | ReasoningDelta
    | CallStart
    | CallOutput
    | CallEnd
    | QuestionAsked
    | QuestionClosed
    | RouteChanged
    | Notice
    | TurnEnd
)
