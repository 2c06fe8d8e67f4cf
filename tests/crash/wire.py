"""What the driver and its workers say to each other, one JSON line each."""

from typing import Literal

from msgspec import Struct

from hark.protocol.receipts import Receipt, Refusal

READY = 0  # the number of a worker's first line


class Order(Struct, omit_defaults=True):
    """The driver's wish: to say a message, or to do something about one."""

    number: int
    do: Literal["say", "stop", "edit", "move", "withdraw"]
    session: str
    message: str = ""
    text: str = ""
    delivery: str = ""


class Reply(Struct, omit_defaults=True):
    """What the worker has to say about an order."""

    number: int
    receipt: Receipt | None = None
    refusal: Refusal | None = None
