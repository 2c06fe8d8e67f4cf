"""The port to what a gateway must not forget: messages that came in, replies that are owed, offers that were made."""

from typing import Protocol

from msgspec import Struct

from hark.protocol.chat import Address, Incoming


class PendingIncoming(Struct, frozen=True):
    """Something that came in and is not dealt with yet; `place` is its place in the order of arrival.

    `is_again`: an earlier process, or a try that failed, may have begun with it. `is_said`: it is known that its
    words reached the session. `is_withdrawn`: that a stop came before the words of a recording were known.
    """

    place: int
    incoming: Incoming
    is_again: bool = False
    is_said: bool = False
    is_withdrawn: bool = False


class SentReply(Struct, frozen=True):
    """One message of ours, first tried at `at`. Without an `id` it is not known whether the platform took it."""

    key: str
    id: str = ""
    at: float = 0.0


class ChatBinding(Struct, frozen=True):
    """An address, the session that it leads to, and the last of its turns whose reply was delivered there."""

    address: Address
    session: str
    delivered: int = 0


class ChatLedger(Protocol):
    """Durable when a method has returned. Every method raises StoreError when it can't be."""

    async def accept(self, incoming: Incoming) -> PendingIncoming | None:
        """Keep what came in; None when the same was kept before, ever."""
        ...

    async def kept(self, surface: str, address: Address | None = None) -> list[PendingIncoming]:
        """Return what of a surface, or of an address on it, is not dealt with yet, in the order of arrival."""
        ...

    async def done(self, *places: int) -> None:
        """They are dealt with, all at once: their texts are not needed any more, their ids are remembered."""
        ...

    async def line(self, address: Address, session: str) -> ChatBinding:
        """Return what is known of an address; made when new, with this session and nothing delivered."""
        ...

    async def lines(self, surface: str) -> list[ChatBinding]:
        """Return all addresses of a surface that were ever talked at."""
        ...

    async def line_of(self, session: str) -> ChatBinding | None:
        """Return the address that leads to a session."""
        ...

    async def delivered(self, address: Address, turn: int) -> None:
        """The reply of this turn, and of all before it, was delivered."""
        ...

    async def forget(self, address: Address) -> None:
        """The session behind it was deleted: what was delivered of it counts no more."""
        ...

    async def sending(self, address: Address, key: str) -> SentReply | None:
        """Note that a message is about to be sent; return what is known of an earlier try under the same key."""
        ...

    async def find(self, address: Address, key: str) -> SentReply | None:
        """Return what is known of a message under that key; None when there is none."""
        ...

    async def sent(self, address: Address, key: str, message: str) -> None:
        """The platform took it under this id."""
        ...

    async def offer(self, address: Address, key: str, text: str) -> None:
        """Keep what a button of ours stands for."""
        ...

    async def offered(self, address: Address, key: str) -> str:
        """Return what a button of ours stands for; "" when it is not known any more."""
        ...
