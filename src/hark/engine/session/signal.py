"""An event that costs next to nothing while nobody waits: a session has several, and sessions are many."""

import asyncio


class Signal:
    """Set or not; any number of tasks may wait until it is set."""

    __slots__ = ("_is_set", "_wait")

    def __init__(self) -> None:
        self._is_set = False
        self._wait: asyncio.Future[None] | None = None

    @property
    def is_set(self) -> bool:
        """True from `set` to `clear`."""
        return self._is_set

    def set(self) -> None:
        """Let all that wait go on, and all that come, until `clear`."""
        self._is_set = True
        self._wake()

    def clear(self) -> None:
        """Have whoever comes from now on wait."""
        self._is_set = False

    def pulse(self) -> None:
        """Let all that wait now go on, and nobody else."""
        self._wake()

    async def wait(self) -> None:
        """Return when it is set, or was since the call. Cancelling one wait leaves the others alone."""
        if self._is_set:
            return
        if self._wait is None:
            self._wait = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._wait)

    def _wake(self) -> None:
        if self._wait is not None:
            self._wait.set_result(None)
            self._wait = None
