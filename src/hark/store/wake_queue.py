"""The sessions that were woken and not yet looked at: bounded, each at most once."""

import asyncio
from collections.abc import AsyncIterator

EVERYTHING = ""
LIMIT = 1024


class WakeQueue:
    """Wakes in order of arrival; too many of them become one that means: look at all."""

    def __init__(self) -> None:
        self._sessions: dict[str, None] = {}
        self._is_closed = False
        self._changed = asyncio.Event()

    def add(self, session: str) -> None:
        """Note that a session was woken."""
        if EVERYTHING not in self._sessions:
            if session == EVERYTHING or len(self._sessions) >= LIMIT:
                self._sessions.clear()
                session = EVERYTHING
            self._sessions[session] = None
        self._changed.set()

    def close(self) -> None:
        """End the iteration, at once."""
        self._is_closed = True
        self._changed.set()

    async def __aiter__(self) -> AsyncIterator[str]:
        while not self._is_closed:
            if self._sessions:
                session = next(iter(self._sessions))
                del self._sessions[session]
                yield session
            else:
                self._changed.clear()
                await self._changed.wait()
