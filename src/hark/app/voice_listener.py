"""A voice message's words, brought to a session."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from hark.app.handle import SessionHandle
from hark.protocol.commands import Delivery
from hark.protocol.receipts import Receipt


class VoiceLine(Struct, frozen=True):
    """What a surface gives: what a person sees (without waiting for it), and what is a wish to stop."""

    show: Callable[[str], None]
    is_stop: Callable[[str], bool]


class SessionListener:
    """Says what was heard as the message `id`, so that the same voice message is taken once."""

    def __init__(self, session: SessionHandle, line: VoiceLine, id: str, author: str = "") -> None:  # noqa: A002
        self._session = session
        self._line = line
        self._id = id
        self._author = author

    def is_stop(self, text: str) -> bool:
        """Tell whether these words are a wish to stop."""
        return self._line.is_stop(text)

    def echo(self, text: str) -> None:
        """Show the person what was heard."""
        self._line.show(text)

    def progress(self, text: str) -> None:
        """The words so far are not shown: those of the end are."""

    def tell(self, text: str) -> None:
        """Tell the person what became of the voice message."""
        self._line.show(text)

    async def say(self, text: str) -> Receipt:
        """Go on with the words exactly as if they had been typed."""
        receipt = await self._session.say(text, id=self._id, author=self._author)
        return replace(receipt, transcript=text)

    async def queue(self, text: str) -> Receipt:
        """Put a message into the queue, behind the turn that runs."""
        receipt = await self._session.say(text, Delivery.QUEUE, id=self._id, author=self._author)
        return replace(receipt, transcript="")

    async def interrupt(self) -> None:
        """Stop the turn that runs, if there is one."""
        await self._session.interrupt(source="voice")
