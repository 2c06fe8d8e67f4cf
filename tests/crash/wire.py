"""The messages between the driver and its workers, one JSON line each."""

from typing import Literal

from msgspec import Struct

from hark.protocol.receipts import Receipt, Refusal

READY = 0  # the number of a worker's first line


class Order(Struct, omit_defaults=True):
    """An order from the driver to send or change a message, or to stop a turn."""

    number: int
    do: Literal["say", "stop", "edit", "move", "withdraw"]
    session: str
    message: str = ""
    text: str = ""
    delivery: str = ""


class Reply(Struct, omit_defaults=True):
    """The worker's reply to an order."""

    number: int
    receipt: Receipt | None = None
    refusal: Refusal | None = None
