"""The port between a surface and the agent: what a person in front of a session can do."""

from collections.abc import AsyncIterator
from typing import Protocol

from hark.protocol.commands import Delivery
from hark.protocol.events import AnyEvent
from hark.protocol.outcomes import Outcome
from hark.protocol.receipts import Receipt, Refusal, Settled


class SessionPort(Protocol):
    """One session, as its people use it."""

    @property
    def id(self) -> str:
        """The session's name."""
        ...

    async def say(self, text: str, delivery: Delivery | str | None = None, *, id: str = "") -> Receipt:  # noqa: A002
        """Accept a message, durably; return what became of it.

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

    async def idle(self) -> Outcome | None:
        """Return the last turn's outcome when nothing runs and nothing may run."""
        ...
