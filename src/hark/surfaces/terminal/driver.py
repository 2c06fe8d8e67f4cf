"""The way to the terminal: a key is heard at once, a slow terminal holds up nothing, and its end is noticed."""

import codecs
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rich.segment import Segment
from textual import constants, events
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.color import Color
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter

from hark.text.safe_text import typed_text, without_controls

_PIECE_BYTES = 65_536
_PASTE_START = "\x1b[200~"
_PASTE_END = "\x1b[201~"
_MOST_WAITING = 262_144  # characters: about half a second of frames
_SHORT = 256  # what is shorter than a frame: modes and cursor moves, never left out
_FLUSH_SECONDS = 0.2
_DEAF_SECONDS = 0.15
_LEAVE_KEYS = ("\x03", "\x1b[99;5u")  # Ctrl+C, plain and as newer terminals send it
_DEAF = "\x1b7\x1b[999;1H\x1b[7m Something holds Hark up and it can't hear you. Ctrl+C once more leaves. \x1b[0m\x1b8"
# A little more than the parser's own limit: when the wait is over, it is over for the parser too.
_ESCAPE_SECONDS = constants.ESCAPE_DELAY + 0.002


class ControlFilter(LineFilter):
    """The last filter before the terminal: replaces control characters in the text that widgets draw."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments without control characters."""
        if all(control is not None or without_controls(text) == text for text, _, control in segments):
            return segments
        return [
            Segment(text if control is not None else without_controls(text, " "), style, control)
            for text, style, control in segments
        ]


class GatedApp(App[None]):
    """An app that says when keys may come: those that came earlier wait in the terminal."""

    def __init__(self) -> None:
        super().__init__(driver_class=TerminalDriver)
        self.keys_may_come = threading.Event()
        self.read_before = b""  # what another reader had taken from the terminal already, and not used

    def be_deaf(self, *, is_again: bool) -> None:
        """The person wants to leave and the loop does not hear it. Called in the input's thread."""
        raise NotImplementedError


class TerminalWriter:
    """Writes what is drawn, in a thread of its own: no drawing ever waits for a terminal.

    When too much waits, frames are left out, and `draw_anew` is called once the terminal has caught up.
    """

    def __init__(self, file: int, draw_anew: Callable[[], None]) -> None:
        self._file = file
        self._draw_anew = draw_anew
        self._waiting: list[str] = []
        self._size = 0
        self._has_skipped = False
        self._is_writing = False
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="terminal output", daemon=True).start()

    def write(self, text: str) -> None:
        """Have this written soon."""
        with self._changed:
            if self._size > _MOST_WAITING and len(text) > _SHORT:
                self._has_skipped = True
                return
            self._waiting.append(text)
            self._size += len(text)
            self._changed.notify_all()

    def finish(self, seconds: float) -> None:
        """Return when all is written, or after so long."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._is_writing, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting)
                data = "".join(self._waiting).encode("utf-8", "replace")
                self._waiting.clear()
                self._size = 0
                self._is_writing = True
                has_skipped, self._has_skipped = self._has_skipped, False
            with suppress(OSError):  # the terminal is gone: nobody looks
                while data:
                    data = data[os.write(self._file, data) :]
            if has_skipped:
                self._draw_anew()


class TerminalDriver(LinuxDriver):
    """Textual's driver for Linux and macOS, with its own ways of reading and writing."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)  # pyright: ignore[reportUnknownMemberType]
        assert isinstance(app, GatedApp)
        self._gated = app
        self._output = TerminalWriter(sys.stderr.fileno(), self._draw_anew)
        self._woken, self._wake = os.pipe()
        self._pasted: str | None = None
        self._parser = XTermParser(debug)
        self._unheard_since = 0.0
        self._unheard = 0

    def write(self, data: str) -> None:
        """Have this written soon; never waits."""
        self._output.write(data)

    def stop_application_mode(self) -> None:
        """Give the terminal back."""
        super().stop_application_mode()
        self._output.finish(_FLUSH_SECONDS)

    def disable_input(self) -> None:
        """Take no more keys."""
        self._gated.keys_may_come.set()
        os.write(self._wake, b".")
        super().disable_input()  # waits for the input's thread
        os.read(self._woken, 1)

    def run_input_thread(self) -> None:
        """Read keys until there shall be no more, or the terminal is gone."""
        self._gated.keys_may_come.wait()
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._take(decode(self._gated.read_before))
        timeout: float | None = None
        while not self.exit_event.is_set():
            ready, _, _ = select.select([self.fileno, self._woken], [], [], timeout)
            timeout = None
            if self._woken in ready:
                return
            if ready:
                data = self._read()
                if not data:
                    self._loop.call_soon_threadsafe(self._app.exit)
                    return
                self._take(decode(data))
                timeout = _ESCAPE_SECONDS
            else:
                self._post(self._parser.tick())
                self._tell_deaf()
            if self._unheard_since:
                timeout = _ESCAPE_SECONDS

    def _press_leave(self) -> None:
        """See that Ctrl+C is heard. When the loop is held by something, nobody but this thread can help."""
        if not self._unheard_since:
            self._unheard_since = time.monotonic()
            self._unheard = 0
            self._loop.call_soon_threadsafe(self._hear)
        elif time.monotonic() - self._unheard_since > _DEAF_SECONDS:
            self._unheard += 1
            self._gated.be_deaf(is_again=self._unheard > 1)

    def _hear(self) -> None:
        self._unheard_since = 0.0

    def _tell_deaf(self) -> None:
        since = self._unheard_since
        if since and not self._unheard and time.monotonic() - since > _DEAF_SECONDS:
            self.write(_DEAF)

    def _read(self) -> bytes:
        try:
            return os.read(self.fileno, _PIECE_BYTES)
        except OSError:
            return b""

    def _take(self, text: str) -> None:
        """Take what was typed; what was pasted goes along in one piece, past the parser, which is slow with much."""
        if self._pasted is None and any(key in text for key in _LEAVE_KEYS):
            self._press_leave()
        while text:
            if self._pasted is None:
                before, start, text = text.partition(_PASTE_START)
                if before:
                    self._post(self._parser.feed(before))
                self._pasted = "" if start else None
            else:
                self._pasted, end, text = (self._pasted + text).partition(_PASTE_END)
                if end:
                    self.process_message(events.Paste(typed_text(self._pasted)))
                    self._pasted = None

    def _post(self, messages: Any) -> None:
        for message in messages:
            self.process_message(message)

    def _draw_anew(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: the app is gone
            self._loop.call_soon_threadsafe(self._app.refresh)
