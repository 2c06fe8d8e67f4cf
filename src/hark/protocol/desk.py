"""The port between the desk and the agent: one person, who sees the queue, the children and the past of a session."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from msgspec import Struct

from hark.protocol.commands import Delivery
from hark.protocol.events import AnyEvent
from hark.protocol.messages import Attachment, Message
from hark.protocol.receipts import QueueItem, Receipt, Refusal, Settled


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


class DeskSession(Protocol):
    """A session, as the person at the terminal uses it."""

    @property
    def id(self) -> str:
        """The session's name."""
        ...

    def new_id(self) -> str:
        """Return a name that nothing else has."""
        ...

    async def say(
        self,
        text: str,
        delivery: Delivery | str | None = None,
        *,
        id: str = "",  # noqa: A002
        author: str = "",
        attachments: Sequence[Attachment] = (),
    ) -> Receipt:
        """Accept a message, durably; return what became of it. One that is a slash command is that command.

        Raises:
            StoreError: It was not accepted.
        """
        ...

    async def interrupt(self, source: str = "user", turn: str = "", shown: int | None = None) -> Settled | None:
        """End the running turn; return when it has settled, or None when nothing ran."""
        ...

    async def answer(self, question: str, text: str) -> Refusal | None:
        """Answer a question; return why not."""
        ...

    def events(self) -> AsyncIterator[AnyEvent]:
        """Yield the events from this call on, until the session closes."""
        ...

    async def opened(self) -> None:
        """Return when the session is loaded: from then on no event is missed."""
        ...

    async def transcript(self) -> list[Message]:
        """Return what was said so far."""
        ...

    async def queue(self) -> list[QueueItem]:
        """Return what waits, in running order."""
        ...

    async def edit(self, message: str, text: str) -> Refusal | None:
        """Change the text of a message that waits; return why not."""
        ...

    async def move(self, message: str, position: int) -> Refusal | None:
        """Put a message that waits at another position, from 1; return why not."""
        ...

    async def withdraw(self, message: str) -> Refusal | None:
        """Take a message that waits out of the queue; return why not."""
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
