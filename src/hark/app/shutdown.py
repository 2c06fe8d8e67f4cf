"""The way out: always bounded, whatever is wedged, and honest in its exit code."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

COMPLETED = 0
FAILED = 1
BAD_USAGE = 2
LIMIT_REACHED = 3
FORCED = 70
INTERRUPTED = 130
TERMINATED = 143

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
        _say(f"the exit took longer than {self._seconds:g} s and was forced")
        os._exit(FORCED)


def leave_at_once() -> None:
    """Have the signals end the process, as long as nothing runs that should be settled first."""
    for number in _wanted():
        signal.signal(number, lambda number, _: os._exit(_code(number)))


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
        for number in _wanted():
            signal.signal(number, self._come)

    def _come(self, number: int, frame: FrameType | None) -> None:
        # A plain handler, not the loop's: it runs, answers, and arms the watchdog, even when the loop is stuck.
        if self.code is not None:
            os._exit(_code(number))
        self.code = _code(number)
        self._watchdog.arm()
        name = signal.Signals(number).name
        _say(f"{name}: stopping ... (again to leave at once)")
        self._loop.call_soon_threadsafe(self._wish, name)


def _wanted() -> list[signal.Signals]:
    """Return the signals to take. One that our starter has us ignore, as nohup does, stays ignored."""
    return [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


def _code(number: int) -> int:
    return INTERRUPTED if number == signal.SIGINT else TERMINATED


def _say(text: str) -> None:
    # Not through sys.stderr: the signal may have come in the middle of one of its writes.
    with suppress(OSError):
        os.write(2, f"hark: {text}\n".encode())
