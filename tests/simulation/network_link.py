"""A machine's line to everything outside it: slow, sometimes paused, and dead once the machine is killed."""

import asyncio
from collections.abc import Callable
from random import Random

from hark.protocol.store import StoreError

START_OF_TIME = 1_000_000.0


class Link:
    """Every act of a machine that reaches something outside passes here. It is also the machine's clock."""

    def __init__(self, owner: str, random: Random, tempo: float, is_alive: Callable[[str], bool]) -> None:
        """`tempo` stretches all delays; `is_alive` tells of another owner whether it lives."""
        self.owner = owner
        self.is_alive = is_alive
        self.died_at: float | None = None
        self.paused_until = 0.0
        self.store_time: list[tuple[float, float]] = []
        self.wake_time: list[tuple[float, float]] = []
        self.errors: list[float] = []
        self.failing = 0.0
        self.loses_wakes = 0.0
        self._random = random
        self._tempo = tempo
        self._loop = asyncio.get_running_loop()
        self._names = 0

    @property
    def is_dead(self) -> bool:
        """True once nothing of the machine reaches anything."""
        return self.died_at is not None

    def die(self) -> None:
        """Cut the line for good."""
        if self.died_at is None:
            self.died_at = self.now()

    def now(self) -> float:
        return START_OF_TIME + self._loop.time()

    def new_id(self) -> str:
        self._names += 1
        return f"{self.owner}-n{self._names}"

    def delay(self, kind: str) -> float:
        """Return how long the next act takes: often next to nothing, sometimes long."""
        random = self._random.random
        luck = random()
        if luck < 0.45:
            seconds = 0.001
        elif luck < 0.7:
            seconds = 0.0
        elif luck < 0.97:
            seconds = random() * 0.02
        else:
            seconds = random() * (0.3 if kind != "wake" else 2.0)
        return seconds * self._tempo + random() * 5e-7  # the last is the order among equals

    def wakes(self) -> int:
        """Return how often a wake arrives."""
        luck = self._random.random()
        return 0 if luck < self.loses_wakes else 2 if luck > 0.9 else 1

    def failure(self) -> StoreError | None:
        """Return the error of the next write, if it has one."""
        if self.failing and self._random.random() < self.failing:
            self.errors.append(self.now())
            return StoreError("The disk is full. Make room.")
        return None

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Do something after a while, unless the machine is dead by then."""
        self._loop.call_later(seconds, self._arrive, act)

    async def wait(self, seconds: float) -> None:
        """Return after a while; never, once the machine is dead."""
        arrived: asyncio.Future[None] = self._loop.create_future()
        self.later(seconds, lambda: None if arrived.done() else arrived.set_result(None))
        await arrived

    def _arrive(self, act: Callable[[], object]) -> None:
        if self.is_dead:
            return
        if self._loop.time() < self.paused_until:
            self._loop.call_at(self.paused_until + self._random.random() * 1e-3, self._arrive, act)
        else:
            act()
