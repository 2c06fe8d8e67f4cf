"""What comes of one try to reach a server: many may wait for it, and none can end it for the others."""

import asyncio
from typing import Generic, TypeVar

from hark.mcp.failure import ServerFailure

T = TypeVar("T")


class ConnectResult(Generic[T]):
    """Given once."""

    def __init__(self) -> None:
        self._given = asyncio.Event()
        self._outcome: T | ServerFailure | None = None

    def give(self, outcome: T | ServerFailure) -> None:
        """Say it; only the first time counts."""
        if not self._given.is_set():
            self._outcome = outcome
            self._given.set()

    async def wait(self) -> T:
        """Return what was reached. Safe to cancel.

        Raises:
            ServerFailure: It was not reached.
        """
        await self._given.wait()
        assert self._outcome is not None
        if isinstance(self._outcome, ServerFailure):
            raise self._outcome
        return self._outcome
