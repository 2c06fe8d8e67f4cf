"""The chat ledger's port: durable storage of incoming events, sent replies and button actions."""

from typing import Protocol

from msgspec import Struct

from hark.protocol.chat import Address, IncomingEvent


class PendingIncoming(Struct, frozen=True):
    """An incoming event that is not fully handled yet. `place` is its position in the order of arrival.

    `is_again`: an earlier process or a failed attempt may have started to handle it. `is_said`: its text is known to
    have reached the session. `is_withdrawn`: a stop arrived before the recording was transcribed.
    """

    place: int
    incoming: IncomingEvent
    is_again: bool = False
    is_said: bool = False
    is_withdrawn: bool = False


class SentReply(Struct, frozen=True):
    """A sent message, first attempted at `at`. Without an `id`, it is unknown whether the platform accepted it."""

    key: str
    id: str = ""
    at: float = 0.0


class ChatBinding(Struct, frozen=True):
    """An address, its session, and the number of the last turn whose reply was delivered to the address."""

    address: Address
    session: str
    delivered: int = 0


class ChatLedger(Protocol):
    """Stores chat events and deliveries. Changes are durable on return. Every method may raise StoreError."""

    async def accept(self, incoming: IncomingEvent) -> PendingIncoming | None:
        """Store an incoming event. Return None if the same event was already stored."""
        ...

    async def pending(self, surface: str, address: Address | None = None) -> list[PendingIncoming]:
        """Return the unhandled events from a surface, or from one address on it, in order of arrival."""
        ...

    async def mark_done(self, *positions: int) -> None:
        """Mark events as handled, all in one transaction. Their texts are deleted; their ids are remembered."""
        ...

    async def binding(self, address: Address, session: str) -> ChatBinding:
        """Return the binding of an address. A new address is bound to `session`, with nothing delivered yet."""
        ...

    async def bindings(self, surface: str) -> list[ChatBinding]:
        """Return the bindings of all addresses that were ever used on a surface."""
        ...

    async def binding_of_session(self, session: str) -> ChatBinding | None:
        """Return the binding that contains this session, or None."""
        ...

    async def mark_delivered(self, address: Address, turn: int) -> None:
        """Record that the replies from this turn and all earlier turns were delivered."""
        ...

    async def reset_delivered(self, address: Address) -> None:
        """Reset the delivered turn of an address, after its session was deleted."""
        ...

    async def begin_send(self, address: Address, key: str) -> SentReply | None:
        """Record that a message is about to be sent. Return the earlier attempt under the same key, if any."""
        ...

    async def find_sent(self, address: Address, key: str) -> SentReply | None:
        """Return the send attempt recorded under that key, or None."""
        ...

    async def is_sent(self, address: Address, key_prefix: str, message: str) -> bool:
        """Return whether the message with the platform's id `message` was sent under a key with this prefix."""
        ...

    async def mark_sent(self, address: Address, key: str, message: str) -> None:
        """Record that the platform accepted the message and gave it the id `message`."""
        ...

    async def save_action(self, address: Address, key: str, text: str) -> None:
        """Store the action text behind one of our buttons."""
        ...

    async def find_action(self, address: Address, key: str) -> str:
        """Return the action text behind one of our buttons, or "" if it is no longer stored."""
        ...
