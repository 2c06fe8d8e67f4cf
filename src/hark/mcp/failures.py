"""Why a server can't be used, how often it is tried again, and the result of one try."""

import asyncio
import random
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class ServerFailure(Exception):
    """A server could not be reached, or ended; the text says why. `is_final`: trying again by itself won't help."""

    def __init__(self, text: str, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final


class Backoff(Struct, frozen=True):
    """The first wait doubles with each failure, and is spread a little; so many failures in a row are enough.

    `steady_seconds`: a server that was up for so long, or that has answered, failed for a new reason. `rest_seconds`:
    how long a server that was given up is left alone after a call has tried it in vain.
    """

    first_seconds: float = 0.5
    tries: int = 5
    spread: float = 0.2
    steady_seconds: float = 10.0
    rest_seconds: float = 5.0

    def delay_seconds(self, failures: int) -> float:
        """Return how long to wait after so many failures in a row."""
        return self.first_seconds * 2 ** (failures - 1) * (1 + self.spread * random.random())


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
