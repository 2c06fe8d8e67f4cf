"""A simulated machine's connection to the outside: slow, sometimes paused, and dead once the machine is killed."""

import asyncio
from collections.abc import Callable
from random import Random

from hark.protocol.store import StoreError

START_OF_TIME = 1_000_000.0


class NetworkLink:
    """A simulated machine's link to the outside, through which all its external actions pass, and its clock."""

    def __init__(self, owner: str, random: Random, tempo: float, is_alive: Callable[[str], bool]) -> None:
        """`tempo` scales all delays. `is_alive` returns whether the owner with the given name is alive."""
        self.owner = owner
        self.is_alive = is_alive
        self.died_at: float | None = None
        self.pause_times: list[float] = []
        self.store_spans: list[tuple[float, float]] = []
        self.wake_spans: list[tuple[float, float]] = []
        self.error_times: list[float] = []
        self.failure_rate = 0.0
        self.wake_loss_rate = 0.0
        self._random = random
        self._tempo = tempo
        self._loop = asyncio.get_running_loop()
        self._id_count = 0
        self._paused_until = 0.0

    @property
    def is_dead(self) -> bool:
        """Whether the machine's actions no longer have external effects."""
        return self.died_at is not None

    def die(self) -> None:
        """Cut the link permanently."""
        if self.died_at is None:
            self.died_at = self.now()

    def pause(self, seconds: float) -> None:
        """Let all actions of the machine wait until the pause is over."""
        self.pause_times.append(self.now())
        self._paused_until = self._loop.time() + seconds

    def now(self) -> float:
        return START_OF_TIME + self._loop.time()

    def new_id(self) -> str:
        self._id_count += 1
        return f"{self.owner}-n{self._id_count}"

    def delay(self, kind: str) -> float:
        """Return a random duration for the next action, usually very short and sometimes long."""
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
        return seconds * self._tempo + random() * 5e-7  # the last term orders simultaneous actions

    def wake_count(self) -> int:
        """Return how many times the next wake-up signal is delivered: 0, 1 or 2."""
        luck = self._random.random()
        return 0 if luck < self.wake_loss_rate else 2 if luck > 0.9 else 1

    def next_error(self) -> StoreError | None:
        """Return the error that the next write fails with, or None if it succeeds."""
        if self.failure_rate and self._random.random() < self.failure_rate:
            self.error_times.append(self.now())
            return StoreError("The disk is full. Make room.")
        return None

    def call_later(self, seconds: float, act: Callable[[], object]) -> None:
        """Call a function after a delay, unless the machine is dead by then."""
        self._loop.call_later(seconds, self._run_action, act)

    async def wait(self, seconds: float) -> None:
        """Wait for a delay. Never returns if the machine is dead."""
        arrived: asyncio.Future[None] = self._loop.create_future()
        self.call_later(seconds, lambda: None if arrived.done() else arrived.set_result(None))
        await arrived

    def _run_action(self, action: Callable[[], object]) -> None:
        if self.is_dead:
            return
        if self._loop.time() < self._paused_until:
            self._loop.call_at(self._paused_until + self._random.random() * 1e-3, self._run_action, action)
        else:
            action()
