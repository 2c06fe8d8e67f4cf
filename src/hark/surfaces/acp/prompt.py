"""One prompt of an editor, from its reading to its end."""

import asyncio

from acp import RequestError
from anyio import CancelScope

from hark.protocol.events import TurnEnd
from hark.protocol.receipts import Receipt, ReceiptState

End = TurnEnd | RequestError | None
"""How it ended: with its turn, by an error, or (None) without a turn, as a message that was taken back does."""

_TAKEN = (ReceiptState.STARTED, ReceiptState.STEERED)


class EditorPrompt:
    """What is known of it. A stop is noted on it, so that it can't miss it nor reach another."""

    def __init__(self, message: str, stopped_by: str = "") -> None:
        self.message = message
        self.turn = ""
        self.stopped_by = stopped_by
        self.is_said = False
        self.is_waiting = False
        self.command_scope = CancelScope()
        self.finished = asyncio.Event()
        self._end: asyncio.Future[End] = asyncio.get_running_loop().create_future()

    @property
    def is_running(self) -> bool:
        """True from the step in which it was said until its end."""
        return self.is_said and not self._end.done()

    def stop(self, source: str) -> None:
        """Note a stop; the first one counts."""
        if not self._end.done():
            self.stopped_by = self.stopped_by or source
            self.command_scope.cancel()

    def follow(self, receipt: Receipt) -> None:
        """Take what became of its message."""
        if receipt.state is ReceiptState.WITHDRAWN:
            self.finish(None)
        elif receipt.state in _TAKEN:
            self.turn = self.turn or receipt.turn or ""
        self.is_waiting = not self.turn

    def take(self, turn: str) -> None:
        """A turn has taken it."""
        self.turn = turn
        self.is_waiting = False

    def finish(self, end: End) -> None:
        """It is over; the first end counts."""
        if not self._end.done():
            self._end.set_result(end)

    async def end(self) -> End:
        """Return how it ended."""
        return await self._end
