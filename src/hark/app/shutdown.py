"""The exit of the process, always within a time limit and with a truthful exit code."""

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
DOUBLE_PRESS_SECONDS = 2.0
FINAL_MESSAGE_SECONDS = 0.2

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Watchdog:
    """Reports the current exit step, and kills the process if the exit takes too long.

    The deadline runs in its own thread, so that a stuck event loop can't block it. Output is written in another
    thread, so that a stuck terminal can't block it either. `restore` resets the terminal before anything is
    written; it must allow repeated calls.
    """

    def __init__(self, seconds: float, restore: Callable[[], None] = lambda: None) -> None:
        self.seconds = seconds
        self._restore = restore
        self._current_step = "saving the session"
        self._changed = threading.Event()
        self._is_over = threading.Event()
        self._has_written_all = threading.Event()
        self._thread: threading.Thread | None = None

    def arm(self) -> None:
        """Start the countdown. Repeated calls have no effect."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._enforce_deadline, name="exit watchdog", daemon=True)
            self._thread.start()
            threading.Thread(target=self._report_progress, name="exit progress", daemon=True).start()

    def exit_now(self, code: int) -> NoReturn:
        """Restore the terminal and end the process immediately."""
        self._restore()
        os._exit(code)

    def set_exit_step(self, step: str) -> None:
        """Set the name of the current exit step."""
        self._current_step = step
        self._changed.set()

    def _enforce_deadline(self) -> None:
        threading.Event().wait(self.seconds)
        self._is_over.set()
        self._changed.set()
        self._has_written_all.wait(FINAL_MESSAGE_SECONDS)
        os._exit(FORCED)

    def _report_progress(self) -> None:
        threading.Event().wait(min(FEEDBACK_SECONDS, self.seconds))
        self._restore()
        while not self._is_over.is_set():
            self._changed.clear()
            _write_stderr(f"Shutting down ... ({self._current_step})")
            self._changed.wait()
        _write_stderr(
            f"the exit took longer than {self.seconds:g} s and was forced while waiting for: {self._current_step}"
        )
        self._has_written_all.set()


def exit_on_signals() -> None:
    """Make signals end the process immediately. Used while there is no work to settle."""
    for number in _handled_signals():
        signal.signal(number, lambda number, _: os._exit(_exit_code(number)))


class Signals:
    """Handles SIGINT, SIGTERM and SIGHUP as one request to exit. A second signal ends the process immediately."""

    def __init__(
        self, watchdog: Watchdog, request_exit: Callable[[str], object], stop_turn: Callable[[], bool] = lambda: False
    ) -> None:
        """`request_exit` gets the signal's name, on the loop. `stop_turn` returns whether it stopped a turn."""
        from asyncio import get_running_loop  # `hark COMMAND --help` doesn't need it

        self._watchdog = watchdog
        self._request_exit = request_exit
        self._stop_turn = stop_turn
        self._stopped_at = -math.inf
        self._loop = get_running_loop()
        self.code: int | None = None

    def listen(self) -> None:
        """Install the signal handlers. Must be called in the main thread."""
        for number in _handled_signals():
            signal.signal(number, self._handle_signal)

    def _handle_signal(self, number: int, frame: FrameType | None) -> None:
        # A plain handler, not the loop's: it responds and arms the watchdog even when the loop is stuck.
        if self.code is not None:
            self._watchdog.exit_now(_exit_code(number))
        now = time.monotonic()
        if number == signal.SIGINT and now - self._stopped_at > DOUBLE_PRESS_SECONDS and self._stop_turn():
            self._stopped_at = now
            _write_stderr("stopping the turn ... (press Ctrl-C again to quit)")
            return
        self.code = _exit_code(number)
        self._watchdog.arm()
        name = signal.Signals(number).name
        _write_stderr(f"{name}: stopping ... (repeat to quit immediately)")
        self._loop.call_soon_threadsafe(self._request_exit, name)


def _handled_signals() -> list[signal.Signals]:
    """Return the signals to handle. A signal that the parent process ignores, as with nohup, stays ignored."""
    return [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


def _exit_code(number: int) -> int:
    return INTERRUPTED if number == signal.SIGINT else TERMINATED


def _write_stderr(text: str) -> None:
    # Not through sys.stderr: the signal may have interrupted one of its writes.
    with suppress(OSError):
        os.write(2, f"hark: {text}\n".encode())
