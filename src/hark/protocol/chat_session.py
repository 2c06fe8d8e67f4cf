"""The port between a chat surface and a session: what a conversation needs beside what a desk does."""

from typing import Protocol

from hark.protocol.desk import DeskSession
from hark.protocol.outcomes import Outcome


class ChatSession(DeskSession, Protocol):
    """A session, as the people of a chat use it."""

    async def ended_turns(self, after: int) -> list[tuple[str, Outcome]]:
        """Return the turns that ended, from behind this number on, the oldest first."""
        ...

    async def reply_of(self, turn: str) -> str:
        """Return all that the model said in a turn, as the journal has it."""
        ...
