"""The interface through which a simulated user in the gateway kill test uses a platform."""

from dataclasses import dataclass
from typing import Protocol

from tests.gateway_kills.expectations import INTERRUPT, UserAction


@dataclass(frozen=True, slots=True)
class VisibleMessage:
    """The final state of one of the agent's messages. Its position is `number`, or `id` if `number` is 0."""

    id: str
    text: str
    buttons: tuple[str, ...] = ()
    number: float = 0.0

    @property
    def position(self) -> float:
        """The position in the chat, from the top."""
        return self.number or float(self.id)


@dataclass(frozen=True, slots=True)
class PlatformFeatures:
    """The features of a platform.

    `delivery` is the default delivery. With `has_commands`, `/queue TEXT` overrides it. A client may split a text
    that is longer than `split_characters`.
    """

    delivery: str = INTERRUPT
    can_delete: bool = True
    has_commands: bool = True
    has_albums: bool = False
    is_group: bool = False
    split_characters: int = 3600


class PlatformFixture(Protocol):
    """A simulated user of one chat. Each action is retried until accepted; `action` records when it was."""

    @property
    def session(self) -> str:
        """The session of the chat."""
        ...

    @property
    def author(self) -> str:
        """The user's name, as the agent knows it."""
        ...

    @property
    def author_id(self) -> str:
        """The id that replaces the name if the platform could not resolve it in time; otherwise ""."""
        ...

    @property
    def features(self) -> PlatformFeatures: ...

    async def write(self, text: str, action: UserAction, token: str, *, is_aside: bool = False) -> str:
        """Send a text message and return the platform's message id. An aside is not addressed to the bot."""
        ...

    async def send_picture(self, text: str, action: UserAction, album: str) -> str:
        """Send an image with a caption as part of an album."""
        ...

    async def send_recording(self, recording: bytes, action: UserAction, token: str) -> str: ...

    async def edit(self, message: str, text: str, action: UserAction) -> None: ...

    async def delete(self, message: str, action: UserAction) -> None: ...

    async def press(self, label: str, action: UserAction) -> VisibleMessage | None:
        """Press the newest button with this label. Return its message, or None if there is no such button."""
        ...

    def visible_messages(self) -> list[VisibleMessage]:
        """Return the agent's messages, oldest first."""
        ...
