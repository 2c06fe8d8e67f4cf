"""The port between the desk and the agent: one person, who sees the queue, the children and the past of a session."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from hark.protocol.messages import Message
from hark.protocol.surface import QueueSession


class CommandLine(Struct, frozen=True):
    """A slash command, as help and completion show it."""

    name: str
    takes: str
    help: str


class PastTurn(Struct, frozen=True):
    """A turn that one can go back to before, with the person's words."""

    turn: str
    text: str


class ChildLine(Struct, frozen=True):
    """A child, as the tree shows it: `depth` is 1 for the session's own."""

    name: str
    depth: int
    title: str
    is_running: bool


class DeskSession(QueueSession, Protocol):
    """A session, as the person at the terminal uses it."""

    def new_id(self) -> str:
        """Return a name that nothing else has."""
        ...

    async def transcript(self) -> list[Message]:
        """Return what was said so far."""
        ...


class Desk(Protocol):
    """What the terminal app may use of the agent."""

    @property
    def commands(self) -> Sequence[CommandLine]:
        """The slash commands."""
        ...

    def session(self, name: str) -> DeskSession:
        """Return a session; it is made when new."""
        ...

    def model(self, session: str) -> str:
        """Return the route that serves the session first."""
        ...

    def running(self, session: str) -> str:
        """Return the turn that runs, "" when none does or the session is not loaded yet."""
        ...

    async def children(self, session: str) -> list[ChildLine]:
        """Return the session's children and theirs, each behind its parent."""
        ...

    async def send_now(self, session: str, message: str) -> str:
        """Have a message that waits interrupt what runs, with all that belongs to it; return what was done."""
        ...

    async def sessions(self, words: str = "") -> list[tuple[str, str]]:
        """Return the sessions, the last changed first, each with its title; only those in which the words stand."""
        ...

    async def past(self, session: str) -> list[PastTurn]:
        """Return the turns that one can go back to, the oldest first."""
        ...

    async def rewind(self, session: str, turn: str, *, with_files: bool) -> str:
        """Go back to before a turn, with its file changes or without; return what was done, or why not."""
        ...
