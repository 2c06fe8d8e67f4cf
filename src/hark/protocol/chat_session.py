"""The port between a chat surface and a session: what a conversation needs beside what a desk does."""

from typing import Protocol

from hark.protocol.desk import DeskSession
from hark.protocol.outcomes import Outcome


class ChatSession(DeskSession, Protocol):
    """A session, as the people of a chat use it."""

    async def has_known(self, message: str) -> bool:
        """Tell whether a message of that id was ever accepted here."""
        ...

    async def has_said(self, message: str, text: str) -> bool:
        """Tell whether the model was told a message of that id with these words."""
        ...

    @property
    def running(self) -> str:
        """The turn that runs, "" when none does or the session is not loaded yet."""
        ...

    async def ended_turns(self, after: int) -> list[tuple[str, Outcome]]:
        """Return the turns that ended, from behind this number on, the oldest first."""
        ...

    async def reply_of(self, turn: str) -> str:
        """Return all that the model said in a turn."""
        ...
