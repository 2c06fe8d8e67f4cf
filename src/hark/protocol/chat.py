"""The port to a chat platform: incoming events from users, and outgoing messages to them."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct

from hark.protocol.messages import Attachment


class Address(Struct, frozen=True, omit_defaults=True):
    """A place where users meet the agent: a chat on a surface, and optionally a thread in it. Maps to one session."""

    surface: str
    chat: str
    thread: str = ""


class Author(Struct, frozen=True):
    """The author of a message: the platform's permanent user id, and the display name."""

    id: str
    name: str = ""


class IncomingMessage(Struct, frozen=True, tag="Written", omit_defaults=True):
    """A message from a user. `id` is the platform's message id and is the same when the platform redelivers it.

    `is_for_us`: the message was sent in a direct chat or mentions the bot. `album`: the same value for
    all messages that were sent as one post. `quoted`: the text of the message that this one replies to. `voice`: a
    recording that replaces the text. `replied_to`: the platform's id of the message that this one replies to.
    `is_private`: only the author and the bot are in the chat. `is_answer`: the message is meant as an answer, because
    it replies to a question from the bot or because the sender marked it as an answer.
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
    replied_to: str = ""
    is_private: bool = False
    is_answer: bool = False


class MessageEdited(Struct, frozen=True, tag="Rewritten", omit_defaults=True):
    """A user edited a message. `at` is the time of the edit and distinguishes several edits of one message."""

    id: str
    address: Address
    author: Author
    text: str
    at: float = 0.0


class MessageDeleted(Struct, frozen=True, tag="Removed", omit_defaults=True):
    """A message was deleted."""

    id: str
    address: Address


class ButtonPressed(Struct, frozen=True, tag="Pressed", omit_defaults=True):
    """A user pressed one of our buttons. `value` is the button's value."""

    id: str
    address: Address
    author: Author
    value: str


IncomingEvent = IncomingMessage | MessageEdited | MessageDeleted | ButtonPressed
Deliver = Callable[[IncomingEvent], Awaitable[None]]


class Button(Struct, frozen=True):
    """A button under a message: its label, and the value that a press sends back."""

    text: str
    value: str


class OutgoingMessage(Struct, frozen=True):
    """A message to send. `key` identifies the delivery: a platform with key support accepts each key only once."""

    text: str
    buttons: tuple[Button, ...] = ()
    reply_to: str = ""
    key: str = ""
    voice: bytes = b""


class PlatformLimits(Struct, frozen=True):
    """A platform's limits: maximum message length, minimum time between edits, and supported features.

    `characters` is in UTF-16 code units, so that an emoji counts as two: Telegram counts this way.
    `knows_keys`: the platform deduplicates messages by key. `key_seconds`: for how long it remembers a key.
    """

    characters: int = 4000
    edit_seconds: float = 1.0
    knows_keys: bool = False
    key_seconds: float = float("inf")
    has_buttons: bool = True
    has_reactions: bool = False


class ChatError(Exception):
    """The platform refused a request; the text says why. `retry_after` is the delay in seconds that it requests."""

    def __init__(self, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class ChatGone(ChatError):
    """The chat or message no longer exists, or the bot has lost access to it. Retrying is useless."""


class ChatWriter(Protocol):
    """Sends messages to one platform."""

    async def send(self, address: Address, message: OutgoingMessage) -> str:
        """Send a message and return the platform's id for it.

        Raises:
            ChatError: The message was not sent. After any other exception it is unknown whether the message was sent.
        """
        ...

    async def edit(self, address: Address, message: str, new: OutgoingMessage) -> None:
        """Replace the content of a message that the bot sent.

        Raises:
            ChatError: The message was not changed.
        """
        ...

    async def show_typing(self, address: Address) -> None:
        """Show the typing indicator, which disappears after a few seconds.

        Raises:
            ChatError: The indicator can't be shown.
        """
        ...

    async def react(self, address: Address, message: str, reaction: str) -> None:
        """Add a reaction such as 👀 to a user's message.

        Raises:
            ChatError: The reaction can't be added.
        """
        ...


class ChatSurface(ChatWriter, Protocol):
    """A chat platform. Adding a platform takes one file and one contract test."""

    @property
    def name(self) -> str:
        """The platform's name, such as `telegram` or `discord`."""
        ...

    @property
    def limits(self) -> PlatformLimits:
        """The platform's limits and supported features."""
        ...

    async def run(self, deliver: Deliver) -> None:
        """Receive events until cancelled. The platform's request is acknowledged only after `deliver` has returned.

        Raises:
            ChatError: The platform can't be reached or rejects the bot; the caller retries later.
        """
        ...
