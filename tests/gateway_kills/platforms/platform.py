"""The port between a person of the gateway kill test and the platform at which they sit."""

from dataclasses import dataclass
from typing import Protocol

from tests.gateway_kills.expectations import INTERRUPT, Deed


@dataclass(frozen=True, slots=True)
class Shown:
    """A message of the agent, as the person sees it in the end; `number` is its place where its id does not tell."""

    id: str
    text: str
    buttons: tuple[str, ...] = ()
    number: float = 0.0

    @property
    def place(self) -> float:
        """Where it stands in the chat, from the top."""
        return self.number or float(self.id)


@dataclass(frozen=True, slots=True)
class Habits:
    """What people can do where they sit.

    `delivery` is how a message is meant that does not say so; `has_commands`: `/queue TEXT` says so.
    `full_characters`: from here on a client may have split a text.
    """

    delivery: str = INTERRUPT
    can_delete: bool = True
    has_commands: bool = True
    has_albums: bool = False
    is_group: bool = False
    full_characters: int = 3600


class PlatformFixture(Protocol):
    """One person at one chat. What is done is delivered until it is taken; `deed` hears of that."""

    @property
    def session(self) -> str:
        """The session that the chat leads to."""
        ...

    @property
    def author(self) -> str:
        """The name under which the agent knows this person."""
        ...

    @property
    def author_id(self) -> str:
        """What stands for the name where the platform is asked for it, and does not tell in time; else ""."""
        ...

    @property
    def habits(self) -> Habits: ...

    async def write(self, text: str, deed: Deed, token: str, *, is_aside: bool = False) -> str:
        """Send a text; return the platform's id of it. An aside is said to the others of a group."""
        ...

    async def picture(self, text: str, deed: Deed, album: str) -> str:
        """Send a picture of an album, with words under it."""
        ...

    async def speak(self, recording: bytes, deed: Deed, token: str) -> str: ...

    async def rewrite(self, message: str, text: str, deed: Deed) -> None: ...

    async def delete(self, message: str, deed: Deed) -> None: ...

    async def press(self, label: str, deed: Deed) -> Shown | None:
        """Press the newest button with these words; return the message that it is under."""
        ...

    def shown(self) -> list[Shown]:
        """Return what the agent said here, the oldest first."""
        ...
