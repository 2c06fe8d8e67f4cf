"""The way out: always bounded, whatever is wedged, and honest in its exit code."""

import math
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

COMPLETED = 0
FAILED = 1
BAD_USAGE = 2
LIMIT_REACHED = 3
FORCED = 70
INTERRUPTED = 130
TERMINATED = 143

EXIT_SECONDS = 5.0
FEEDBACK_SECONDS = 0.1
TWICE_SECONDS = 2.0
LAST_WORDS_SECONDS = 0.2

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Watchdog:
    """Says what an end waits for, and ends the process when it takes too long.

    It counts in a thread of its own, so no event loop can hold it, and talks in another, so no terminal can. `restore`
    gives a terminal back its usual ways; it is called before anything is said, so it must not mind to be called when
    that has been done already.
    """

    def __init__(self, seconds: float, restore: Callable[[], None] = lambda: None) -> None:
        self.seconds = seconds
        self._restore = restore
        self._waits_for = "saving the session"
        self._changed = threading.Event()
        self._is_over = threading.Event()
        self._has_said_all = threading.Event()
        self._thread: threading.Thread | None = None

    def arm(self) -> None:
        """Start to count; more than once is once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._count, name="exit watchdog", daemon=True)
            self._thread.start()
            threading.Thread(target=self._talk, name="exit words", daemon=True).start()

    def leave_now(self, code: int) -> NoReturn:
        """End the process at once, the terminal given back."""
        self._restore()
        os._exit(code)

    def waits_for(self, what: str) -> None:
        """Note what the end waits for now."""
        self._waits_for = what
        self._changed.set()

    def _count(self) -> None:
        threading.Event().wait(self.seconds)
        self._is_over.set()
        self._changed.set()
        self._has_said_all.wait(LAST_WORDS_SECONDS)
        os._exit(FORCED)

    def _talk(self) -> None:
        threading.Event().wait(min(FEEDBACK_SECONDS, self.seconds))
        self._restore()
        while not self._is_over.is_set():
            self._changed.clear()
            _say(f"Shutting down ... ({self._waits_for})")
            self._changed.wait()
        _say(f"the exit took longer than {self.seconds:g} s and was forced; it waited for: {self._waits_for}")
        self._has_said_all.set()


def leave_at_once() -> None:
    """Have the signals end the process, as long as nothing runs that should be settled first."""
    for number in _wanted():
        signal.signal(number, lambda number, _: os._exit(_code(number)))


class Signals:
    """SIGINT, SIGTERM and SIGHUP as one wish to end; a second one ends at once."""

    def __init__(
        self, watchdog: Watchdog, wish: Callable[[str], None], stop: Callable[[], bool] = lambda: False
    ) -> None:
        """`wish` is called on the loop with the signal's name. `stop` may use a first Ctrl-C up: True when it did."""
        from asyncio import get_running_loop  # `hark COMMAND --help` needs none of it

        self._watchdog = watchdog
        self._wish = wish
        self._stop = stop
        self._stopped_at = -math.inf
        self._loop = get_running_loop()
        self.code: int | None = None

    def listen(self) -> None:
        """Take the signals over; must be called in the main thread."""
        for number in _wanted():
            signal.signal(number, self._come)

    def _come(self, number: int, frame: FrameType | None) -> None:
        # A plain handler, not the loop's: it runs, answers, and arms the watchdog, even when the loop is stuck.
        if self.code is not None:
            self._watchdog.leave_now(_code(number))
        now = time.monotonic()
        if number == signal.SIGINT and now - self._stopped_at > TWICE_SECONDS and self._stop():
            self._stopped_at = now
            _say("stopping the turn ... (Ctrl-C again leaves)")
            return
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
