"""The port to what a gateway must not forget: messages that came in, replies that are owed, people who may talk."""

from typing import Protocol

from msgspec import Struct

from hark.protocol.chat import Address, Incoming


class Kept(Struct, frozen=True):
    """Something that came in and is not dealt with yet; `place` is its place in the order of arrival."""

    place: int
    incoming: Incoming


class Sent(Struct, frozen=True):
    """One message of ours. Without an `id` it is not known whether the platform took it."""

    key: str
    id: str = ""


class Line(Struct, frozen=True):
    """An address, the session that it leads to, and the last of its turns whose reply was delivered there."""

    address: Address
    session: str
    delivered: int = 0
    is_owed: bool = False


class ChatLedger(Protocol):
    """Durable when a method has returned. Every method raises StoreError when it can't be."""

    async def accept(self, incoming: Incoming) -> Kept | None:
        """Keep what came in; None when the same was kept before, ever."""
        ...

    async def kept(self) -> list[Kept]:
        """Return what is not dealt with yet, in the order of arrival."""
        ...

    async def done(self, place: int) -> None:
        """It is dealt with: its text is not needed any more, its id is remembered."""
        ...

    async def line(self, address: Address, session: str) -> Line:
        """Return what is known of an address; made when new, with this session and nothing delivered."""
        ...

    async def owed(self) -> list[Line]:
        """Return the addresses to which replies may be owed."""
        ...

    async def owe(self, address: Address) -> None:
        """From now on replies may be owed there."""
        ...

    async def delivered(self, address: Address, turn: int, *, is_all: bool) -> None:
        """The reply of this turn, and of all before it, was delivered. `is_all`: nothing more is owed."""
        ...

    async def sending(self, address: Address, key: str) -> Sent | None:
        """Note that a message is about to be sent; return what is known of an earlier try under the same key."""
        ...

    async def sent(self, address: Address, key: str, message: str) -> None:
        """The platform took it under this id."""
        ...
