"""What became of a message or of a wish: said only when it is true and durable."""

from enum import StrEnum

from msgspec import Struct

from hark.protocol.commands import Delivery
from hark.protocol.outcomes import Outcome, Timings


class ReceiptState(StrEnum):
    """The states that a message goes through. The first six answer a post; the others come later, as events."""

    STARTED = "started"
    INTERRUPTING = "interrupting"
    STEERING = "steering"
    QUEUED = "queued"
    HELD = "held"
    DUPLICATE = "duplicate"
    STEERED = "steered"
    EDITED = "edited"
    WITHDRAWN = "withdrawn"


class Receipt(Struct, frozen=True, omit_defaults=True):
    """What became of one message. `turn` is the turn that it started, steers or cuts; `position` counts from 1.

    `text` comes with a message that is handed back.
    """

    id: str
    session: str
    state: ReceiptState
    turn: str | None = None
    position: int | None = None
    transcript: str | None = None
    text: str | None = None


class QueueItem(Struct, frozen=True):
    """A message that waits."""

    id: str
    text: str
    delivery: Delivery
    state: ReceiptState


class Settled(Struct, frozen=True):
    """The answer to an interrupt: the turn that it met, and how that turn ended."""

    turn: str
    outcome: Outcome
    timings: Timings


class Refusal(Struct, frozen=True):
    """Why a wish about the queue or a question has no effect."""

    code: str
    message: str
