"""Events: the typed output of a session, the same in Python and on the wire."""

from msgspec import Struct, field

from hark.protocol.messages import Effect
from hark.protocol.outcomes import Outcome, Timings, Usage
from hark.protocol.receipts import Receipt
from hark.protocol.tool import QuestionKind


class Event(Struct, frozen=True, tag_field="type"):
    """The base of all events. `seq` increases within a session, `at` is Unix time, `turn` is set only during a turn."""

    session: str
    turn: str | None
    seq: int
    at: float

    @property
    def type(self) -> str:
        """The event's type on the wire, such as `turn.started`."""
        return str(self.__struct_config__.tag)


class MessageAccepted(Event, frozen=True, tag="message.accepted"):
    """A message was stored durably in the inbox."""

    id: str
    text: str
    author: str = ""


class ReceiptChanged(Event, frozen=True, tag="receipt"):
    """The state of a message changed."""

    receipt: Receipt


class TurnStart(Event, frozen=True, tag="turn.started"):
    """A turn started with these messages."""

    messages: tuple[str, ...]


class StepStart(Event, frozen=True, tag="step.started"):
    """A step started. A step is one model reply and the tool calls in it."""

    step: int


class ReplyDelta(Event, frozen=True, tag="reply.delta"):
    """A piece of the reply's text."""

    text: str


class ReplyRestarted(Event, frozen=True, tag="reply.restarted"):
    """The stream broke after text was shown. Readers must discard the text of this step; it will be sent again."""

    step: int


class ReasoningDelta(Event, frozen=True, tag="reasoning.delta"):
    """A piece of the model's reasoning."""

    text: str


class CallStart(Event, frozen=True, tag="call.started"):
    """A tool call started."""

    call: str
    name: str
    arguments: str


class CallOutput(Event, frozen=True, tag="call.output"):
    """A piece of a running tool's output."""

    call: str
    text: str


class CallEnd(Event, frozen=True, tag="call.ended"):
    """A tool call ended with this result."""

    call: str
    name: str
    effect: Effect
    text: str
    is_error: bool = False


class QuestionAsked(Event, frozen=True, tag="question.asked"):
    """The turn is waiting for the user's answer. For an approval, `call` is the tool call to approve.

    `is_open_ended`: the user types a value, and the choices have no numbers.
    """

    question: str
    text: str
    choices: tuple[str, ...] = ()
    kind: QuestionKind = QuestionKind.QUESTION
    call: str = ""
    is_open_ended: bool = False


class QuestionClosed(Event, frozen=True, tag="question.closed"):
    """A question was closed: answered, timed out, or withdrawn by a stop."""

    question: str
    reason: str


class RouteChanged(Event, frozen=True, tag="route.changed"):
    """The turn switched to another route."""

    route: str
    reason: str


class Notice(Event, frozen=True, tag="notice"):
    """Information for the user. A notice with the same `code` replaces the previous one."""

    code: str
    text: str


class TurnEnd(Event, frozen=True, tag="turn.ended"):
    """A turn ended, and its end is durable."""

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
