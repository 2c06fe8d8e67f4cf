"""The port to a chat platform: what comes from its people, and what goes to them."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct

from hark.protocol.messages import Attachment


class Address(Struct, frozen=True, omit_defaults=True):
    """Where people meet the agent: a chat of a surface, and a thread in it; it leads to one session."""

    surface: str
    chat: str
    thread: str = ""


class Author(Struct, frozen=True):
    """Who wrote: the platform's own id, which never changes, and the name that people see."""

    id: str
    name: str = ""


class Written(Struct, frozen=True, tag="Written", omit_defaults=True):
    """A message. `id` is the platform's, the same when it is delivered again.

    `is_for_us`: it was said to us alone, or names us. `album`: what the client split and what belongs together has the
    same one. `quoted` is the text that it replies to. `voice` is a recording that stands for the text.
    """

    id: str
    address: Address
    author: Author
    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    voice: Attachment | None = None
    is_for_us: bool = True
    album: str = ""
    quoted: str = ""
    at: float = 0.0


class Rewritten(Struct, frozen=True, tag="Rewritten", omit_defaults=True):
    """A message has another text now; `at` tells one edit from another."""

    id: str
    address: Address
    author: Author
    text: str
    at: float = 0.0


class Removed(Struct, frozen=True, tag="Removed", omit_defaults=True):
    """A message was deleted."""

    id: str
    address: Address


class Pressed(Struct, frozen=True, tag="Pressed", omit_defaults=True):
    """A person pressed a button of ours; `value` is what it stands for."""

    id: str
    address: Address
    author: Author
    value: str


Incoming = Written | Rewritten | Removed | Pressed
Deliver = Callable[[Incoming], Awaitable[None]]


class Button(Struct, frozen=True):
    """A button under a message: what people read, and what comes back."""

    text: str
    value: str


class Outgoing(Struct, frozen=True):
    """What is sent. `key` names this very sending: a platform that knows keys takes the same one once."""

    text: str
    buttons: tuple[Button, ...] = ()
    reply_to: str = ""
    key: str = ""
    voice: bytes = b""


class PlatformLimits(Struct, frozen=True):
    """What a platform allows: how long a message may be, how often one may be edited, and whether it knows keys.

    `key_seconds`: for how long it knows that it has taken one.
    """

    characters: int = 4000
    edit_seconds: float = 1.0
    knows_keys: bool = False
    key_seconds: float = float("inf")
    has_buttons: bool = True
    has_reactions: bool = False


class ChatError(Exception):
    """The platform refuses; the text says why. `retry_after`: seconds, when it asks us to wait."""

    def __init__(self, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class ChatGone(ChatError):
    """That chat or message is not there any more, or closed to us: trying again is of no use."""


class ChatWriter(Protocol):
    """Sends to one platform."""

    async def send(self, address: Address, message: Outgoing) -> str:
        """Send a message; return the platform's id of it.

        Raises:
            ChatError: It was not sent. Any other end leaves open whether it was.
        """
        ...

    async def edit(self, address: Address, message: str, new: Outgoing) -> None:
        """Change a message of ours.

        Raises:
            ChatError: It was not changed.
        """
        ...

    async def typing(self, address: Address) -> None:
        """Show that we are at work; lasts a few seconds.

        Raises:
            ChatError: It can't be shown.
        """
        ...

    async def react(self, address: Address, message: str, sign: str) -> None:
        """Put a sign such as 👀 on a person's message.

        Raises:
            ChatError: It can't be put there.
        """
        ...


class ChatSurface(ChatWriter, Protocol):
    """One platform. Adding one is one file and one contract test."""

    @property
    def name(self) -> str:
        """Its name: telegram, discord, ..."""
        ...

    @property
    def limits(self) -> PlatformLimits:
        """What it allows."""
        ...

    async def run(self, deliver: Deliver) -> None:
        """Receive until cancelled. The platform's own ack comes only after `deliver` has returned.

        Raises:
            ChatError: The platform can't be reached or refuses us; whoever runs it tries again later.
        """
        ...
