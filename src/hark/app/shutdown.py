"""The way out: always bounded, whatever is wedged, and honest in its exit code."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

COMPLETED = 0
FAILED = 1
BAD_USAGE = 2
LIMIT_REACHED = 3
FORCED = 70
INTERRUPTED = 130
TERMINATED = 143


class Watchdog:
    """Ends the process when its end takes too long. It is a thread of its own: no event loop can hold it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._thread: threading.Thread | None = None

    def arm(self) -> None:
        """Start to count; more than once is once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._bite, name="exit watchdog", daemon=True)
            self._thread.start()

    def _bite(self) -> None:
        threading.Event().wait(self._seconds)
        os.write(2, f"hark: the exit took longer than {self._seconds:g} s and was forced\n".encode())
        os._exit(FORCED)


class Signals:
    """SIGINT, SIGTERM and SIGHUP as one wish to end; a second one ends at once."""

    def __init__(self, watchdog: Watchdog, wish: Callable[[str], None]) -> None:
        """`wish` is called on the loop with the signal's name."""
        self._watchdog = watchdog
        self._wish = wish
        self._loop = asyncio.get_running_loop()
        self.code: int | None = None

    def listen(self) -> None:
        """Take the signals over; must be called in the main thread."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._come)

    def _come(self, number: int, frame: FrameType | None) -> None:
        # A plain handler, not the loop's: it runs, and arms the watchdog, even when the loop is stuck.
        code = INTERRUPTED if number == signal.SIGINT else TERMINATED
        if self.code is not None:
            os._exit(code)
        self.code = code
        self._watchdog.arm()
        self._loop.call_soon_threadsafe(self._wish, signal.Signals(number).name)
