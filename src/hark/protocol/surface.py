"""The ports between a surface and a session: what everybody in front of one can do, and the same with its queue."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol, TypedDict, Unpack

from hark.protocol.commands import Delivery, Shown
from hark.protocol.events import AnyEvent
from hark.protocol.messages import Attachment
from hark.protocol.outcomes import Outcome
from hark.protocol.receipts import QueueItem, Receipt, Refusal, Settled


class Details(TypedDict, total=False):
    """What may be told of a message beside its words and their delivery.

    `id`: the same one is taken once; without it the message gets one. `is_stopped`: a stop came while the message was
    on its way, so that it sets nothing off. `shown`: how much of the running reply the person had seen or heard; if
    the message interrupts it, the rest is not kept.
    """

    id: str
    author: str
    attachments: Sequence[Attachment]
    is_stopped: bool
    shown: Shown | None


class SessionPort(Protocol):
    """One session, as its people use it."""

    @property
    def id(self) -> str:
        """The session's name."""
        ...

    async def say(self, text: str, delivery: Delivery | str | None = None, **details: Unpack[Details]) -> Receipt:
        """Accept a message, durably; return what became of it. One that is a slash command is that command.

        Raises:
            ValueError: There is no such delivery.
            StoreError: It was not accepted.
        """
        ...

    async def interrupt(self, source: str = "user", turn: str = "", shown: int | None = None) -> Settled | None:
        """End the running turn (with `turn`, only that one); return when it has settled, or None when nothing ran.

        `shown` is how many characters of the running reply the person had seen; the rest is not kept.
        """
        ...

    async def answer(self, question: str, text: str) -> Refusal | None:
        """Answer a question; return why not."""
        ...

    def events(self) -> AsyncIterator[AnyEvent]:
        """Yield the events from this call on, until the session closes."""
        ...


class AwaitedSession(SessionPort, Protocol):
    """A session whose rest can be waited for."""

    async def idle(self) -> Outcome | None:
        """Return the last turn's outcome when nothing runs and nothing may run."""
        ...


class QueueSession(SessionPort, Protocol):
    """A session whose queue is in its people's hands."""

    async def opened(self) -> None:
        """Return when the session is loaded: what is told from then on comes behind all that was told before."""
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
