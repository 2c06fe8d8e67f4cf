"""Receipts: the state of a message, or the result of a request. Published only when true and durable."""

from enum import StrEnum

from msgspec import Struct

from hark.protocol.commands import Delivery
from hark.protocol.outcomes import Outcome, Timings


class ReceiptState(StrEnum):
    """The states of a message. Sending a message returns one of the first seven; the others arrive later, as events.

    `REFUSED`: the message was not accepted, because the queue is full.
    Only a voice message can be `answered`: its transcript answered a question and is not a message.
    """

    STARTED = "started"
    INTERRUPTING = "interrupting"
    STEERING = "steering"
    QUEUED = "queued"
    HELD = "held"
    DUPLICATE = "duplicate"
    REFUSED = "refused"
    STEERED = "steered"
    EDITED = "edited"
    WITHDRAWN = "withdrawn"
    ANSWERED = "answered"


class Receipt(Struct, frozen=True, omit_defaults=True):
    """The state of a message. `turn` is the turn that the message started, steers or interrupts.

    `position` counts from 1. `text` is set when a withdrawn message is returned to the user. `reason` says why a
    message was refused.
    """

    id: str
    session: str
    state: ReceiptState
    turn: str | None = None
    position: int | None = None
    transcript: str | None = None
    text: str | None = None
    reason: str | None = None


class QueueItem(Struct, frozen=True):
    """A queued message."""

    id: str
    text: str
    delivery: Delivery
    state: ReceiptState


class Settled(Struct, frozen=True):
    """The result of an interrupt: the interrupted turn and its outcome."""

    turn: str
    outcome: Outcome
    timings: Timings


class Refusal(Struct, frozen=True):
    """The reason why a request had no effect."""

    code: str
    message: str
