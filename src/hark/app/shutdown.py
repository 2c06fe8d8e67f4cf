"""The exit of the process, always within a time limit and with a truthful exit code."""

import math
import os
import signal
import time
from contextlib import suppress

TYPE_CHECKING = False  # main imports this module before the first signal can be handled, so it must load quickly

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType
    from typing import NoReturn, Self

COMPLETED = 0
FAILED = 1
BAD_USAGE = 2
LIMIT_REACHED = 3
FORCED = 70
INTERRUPTED = 130

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

    def __init__(self, seconds: float, restore: "Callable[[], None]" = lambda: None) -> None:
        # Imported here, because nothing can be imported in a signal handler: it may interrupt the same import.
        import threading
        from queue import SimpleQueue

        from hark.app.settings import home_directory
        from hark.processes.own_processes import OwnProcesses

        self.seconds = seconds
        self.processes = OwnProcesses(home_directory())
        self._restore = restore
        self._current_step = "saving the session"
        # A signal handler may interrupt `arm` and call it again, which only this queue allows. Nor could the handler
        # start a thread, because it may have interrupted the start of another.
        self._armed = SimpleQueue[None]()
        self._is_exiting = threading.Event()
        self._changed = threading.Event()
        self._is_over = threading.Event()
        self._has_written_all = threading.Event()
        for run in (self._enforce_deadline, self._report_progress):
            threading.Thread(target=run, name="exit watchdog", daemon=True).start()

    def arm(self) -> None:
        """Start the countdown. Repeated calls have no effect. Safe to call in a signal handler."""
        self._armed.put(None)
        # Until the exit ends, orphans become our children. So they are found even if they hide their cookie.
        self.processes.adopt_orphans()

    def exit_now(self, code: int) -> "NoReturn":
        """Kill all processes that this one started, restore the terminal and end the process immediately."""
        try:
            self.processes.kill()
            with suppress(OSError):  # output that another thread still writes must not follow the reset
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            self._restore()
        finally:
            os._exit(code)

    def set_exit_step(self, step: str) -> None:
        """Set the name of the current exit step."""
        self._current_step = step
        self._changed.set()

    def _enforce_deadline(self) -> None:
        self._armed.get()
        self._is_exiting.set()
        time.sleep(self.seconds)
        self._is_over.set()
        self._changed.set()
        self._has_written_all.wait(FINAL_MESSAGE_SECONDS)
        self.exit_now(FORCED)

    def _report_progress(self) -> None:
        self._is_exiting.wait()
        time.sleep(min(FEEDBACK_SECONDS, self.seconds))
        self._restore()
        while not self._is_over.is_set():
            self._changed.clear()
            _write_stderr(f"Shutting down ... ({self._current_step})")
            self._changed.wait()
        _write_stderr(
            f"the exit took longer than {self.seconds:g} s and was forced while waiting for: {self._current_step}"
        )
        self._has_written_all.set()


def exit_on_signals(restore: "Callable[[], None]" = lambda: None) -> None:
    """Make signals restore the terminal and end the process. Used while there are no processes or work to settle."""

    arrivals = _SignalArrivals()

    def exit_now(number: int, frame: "FrameType | None") -> None:
        code = _exit_code(arrivals.read(number)[0])
        try:
            for other in _SIGNALS:
                signal.signal(other, signal.SIG_IGN)
            restore()
        finally:
            os._exit(code)

    for number in _handled_signals():
        signal.signal(number, exit_now)


class Signals:
    """Handles SIGINT, SIGTERM and SIGHUP as one request to exit. A second signal ends the process immediately.

    As a context manager, it handles signals from the start of the block. Without a `request_exit`, as before the work
    begins and after the block, even the first signal ends the process immediately. If the block fails after a signal,
    the exit code still names that signal.
    """

    def __init__(
        self,
        watchdog: Watchdog,
        request_exit: "Callable[[str], object] | None" = None,
        stop_turn: "Callable[[], bool]" = lambda: False,
    ) -> None:
        """`request_exit` gets the signal's name, on the loop. `stop_turn` returns whether it stopped a turn."""
        from asyncio import get_running_loop  # `hark COMMAND --help` doesn't need it

        self._watchdog = watchdog
        self.request_exit: Callable[[str], object] | None = request_exit
        self.stop_turn: Callable[[], bool] = stop_turn
        self.reload: Callable[[], object] | None = None  # called on the loop by SIGHUP, instead of an exit
        self._stopped_at = -math.inf
        self._loop = get_running_loop()
        self._pid = os.getpid()
        self._arrivals: _SignalArrivals | None = None
        self._terminals = _find_terminals()
        self.code: int | None = None

    def __enter__(self) -> "Self":
        self.listen()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: "TracebackType | None"
    ) -> None:
        self.request_exit = self.reload = None
        if error is not None and self.code:
            _write_stderr(f"error during the exit: {error!r}")
            self._watchdog.exit_now(self.code)

    def listen(self) -> None:
        """Install the signal handlers. Must be called in the main thread."""
        self._arrivals = _SignalArrivals()
        # If another thread receives the signal, only this wakes the loop in the main thread, which calls the handler.
        self._loop.add_reader(self._arrivals.reader, self._arrivals.discard)
        for number in _handled_signals():
            signal.signal(number, self._handle_signal)

    def _handle_signal(self, number: int, frame: "FrameType | None") -> None:
        # A plain handler, not the loop's: it responds and arms the watchdog even when the loop is stuck.
        if os.getpid() != self._pid:  # a forked child that has not reset its handlers yet
            os._exit(_exit_code(number))
        arrived = self._arrivals.read(number) if self._arrivals else [number]
        self._process_signal(arrived[0])
        if arrived.count(arrived[0]) > 1:  # Python calls the handler once if the same signal arrives twice in a row
            self._process_signal(arrived[0])

    def _process_signal(self, number: int) -> None:
        request_exit = self.request_exit
        if self.code is not None or request_exit is None or self._loop.is_closed():
            self.code = self.code or _exit_code(number)  # for a signal that interrupts the kill
            self._watchdog.exit_now(self.code)
        if number == signal.SIGHUP and self.reload is not None and _find_terminals() == self._terminals:
            self._loop.call_soon_threadsafe(self.reload)
            return
        now = time.monotonic()
        has_just_stopped = now - self._stopped_at <= DOUBLE_PRESS_SECONDS
        if number == signal.SIGINT and not has_just_stopped and self.stop_turn():
            self._stopped_at = now
            self._watchdog.processes.adopt_orphans()  # the next signal may interrupt the stop
            _write_stderr("stopping the turn ... (press Ctrl-C again to quit)")
            return
        self.code = INTERRUPTED if has_just_stopped else _exit_code(number)  # the first signal of the two
        self._watchdog.arm()
        name = signal.Signals(number).name
        _write_stderr(f"{name}: stopping ... (repeat to quit immediately)")
        self._loop.call_soon_threadsafe(request_exit, name)


class _SignalArrivals:
    """The order in which signals arrive. Python calls the handlers of pending signals in the order of their numbers."""

    def __init__(self) -> None:
        self.reader, writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def read(self, number: int) -> list[int]:
        """Return the signals since the last call, oldest first. `number` is the one whose handler is called."""
        arrived = b""
        with suppress(OSError):
            arrived = os.read(self.reader, 4096)
        return [other for other in arrived if other in _SIGNALS] or [number]

    def discard(self) -> None:
        """Discard the signals whose handlers have already been called."""
        self.read(0)


def _find_terminals() -> list[str | int]:
    """Return the controlling terminal and the standard descriptors that are terminals, without closed ones."""
    terminals: list[str | int] = [descriptor for descriptor in range(3) if os.isatty(descriptor)]
    with suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
        terminals.append("/dev/tty")
    return terminals


def _handled_signals() -> list[signal.Signals]:
    """Return the signals to handle. A signal that the parent process ignores, as with nohup, stays ignored."""
    return [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


def _exit_code(number: int) -> int:
    return 128 + number


def _write_stderr(text: str) -> None:
    # Not through sys.stderr: the signal may have interrupted one of its writes.
    with suppress(OSError):
        os.write(2, f"hark: {text}\n".encode())
