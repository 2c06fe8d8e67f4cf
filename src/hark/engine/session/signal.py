"""An event flag that uses little memory, because each session has several and a process has many sessions."""

import asyncio


class Signal:
    """An event flag that tasks can wait for."""

    __slots__ = ("_is_set", "_wait")

    def __init__(self) -> None:
        self._is_set = False
        self._wait: asyncio.Future[None] | None = None

    @property
    def is_set(self) -> bool:
        """True after `set`, until `clear` is called."""
        return self._is_set

    def set(self) -> None:
        """Resume all waiting tasks, and let later waits return immediately, until `clear`."""
        self._is_set = True
        self._wake()

    def clear(self) -> None:
        """Make later calls to `wait` block again."""
        self._is_set = False

    def pulse(self) -> None:
        """Resume the tasks that wait now, without setting the signal."""
        self._wake()

    async def wait(self) -> None:
        """Wait until the signal is set or pulsed. Cancelling one wait doesn't affect the others."""
        if self._is_set:
            return
        if self._wait is None:
            self._wait = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._wait)

    def _wake(self) -> None:
        if self._wait is not None:
            self._wait.set_result(None)
            self._wait = None
