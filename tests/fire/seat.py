"""The port between a person of the fire test and the platform at which they sit."""

from dataclasses import dataclass
from typing import Protocol

from tests.fire.book import Deed


@dataclass(frozen=True, slots=True)
class Shown:
    """A message of the agent, as the person sees it in the end."""

    id: str
    text: str
    buttons: tuple[str, ...] = ()


class Seat(Protocol):
    """One person at one chat. What is done is delivered until it is taken; `deed` hears of that."""

    @property
    def session(self) -> str:
        """The session that the chat leads to."""
        ...

    @property
    def can_delete(self) -> bool: ...

    @property
    def has_commands(self) -> bool:
        """True where `/queue TEXT` is the way to say how a message is meant."""
        ...

    async def write(self, text: str, deed: Deed, token: str) -> str:
        """Send a text; return the platform's id of it."""
        ...

    async def speak(self, recording: bytes, deed: Deed, token: str) -> str: ...

    async def rewrite(self, message: str, text: str, deed: Deed) -> None: ...

    async def delete(self, message: str, deed: Deed) -> None: ...

    async def press(self, label: str, deed: Deed) -> str:
        """Press the newest button with these words; return the text above it, "" when there is none."""
        ...

    def shown(self) -> list[Shown]:
        """Return what the agent said here, the oldest first."""
        ...
