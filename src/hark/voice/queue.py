"""The order of a session's incoming messages: each waits until the one before it has been delivered."""

import anyio


class QueueSlot:
    """A position in a queue. Whoever joined leaves it, however it ends."""

    def __init__(self, queue: "list[QueueSlot]") -> None:
        """Join the queue at its end."""
        self.is_stopped = False  # a stop came behind it, before its turn
        self._queue = queue
        self.turn = anyio.Event()
        queue.append(self)
        queue[0].turn.set()

    def before(self) -> "list[QueueSlot]":
        """Return the slots before this one."""
        return self._queue[: self._queue.index(self)]

    async def reached(self) -> None:
        """Return when all that came before have left. Safe to cancel: the slot is kept."""
        await self.turn.wait()

    def leave(self) -> None:
        """Let the next one go on. More than once is once."""
        if self in self._queue:
            self._queue.remove(self)
            if self._queue:
                self._queue[0].turn.set()
