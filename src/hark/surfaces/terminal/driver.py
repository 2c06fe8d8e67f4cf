"""Terminal input and output: reads keys at once, never blocks on a slow terminal, detects a closed terminal."""

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

from hark.text.safe_text import replace_control_characters, sanitize_input

_READ_BYTES = 65_536
_PASTE_START = "\x1b[200~"
_PASTE_END = "\x1b[201~"
_MAX_BUFFERED_CHARACTERS = 262_144  # about half a second of frames
_MIN_FRAME_CHARACTERS = 256  # shorter writes are modes and cursor moves, which are never skipped
_FLUSH_TIMEOUT_SECONDS = 0.2
_UNRESPONSIVE_SECONDS = 0.15
_QUIT_KEYS = ("\x03", "\x1b[99;5u")  # Ctrl+C in the legacy and in the newer key encoding
_UNRESPONSIVE_TEXT = "\x1b7\x1b[999;1H\x1b[7m Hark is not responding. Press Ctrl+C again to quit. \x1b[0m\x1b8"
# Slightly longer than the parser's own delay, so that the parser has timed out when this wait ends.
_ESCAPE_SECONDS = constants.ESCAPE_DELAY + 0.002


class ControlCharacterFilter(LineFilter):
    """A filter that runs last and replaces control characters in the text that widgets draw."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments without control characters."""
        if all(control is not None or replace_control_characters(text) == text for text, _, control in segments):
            return segments
        return [
            Segment(text if control is not None else replace_control_characters(text, " "), style, control)
            for text, style, control in segments
        ]


class InputGatedApp(App[None]):
    """An app that reads keys only after `input_enabled` is set. Earlier keys stay in the terminal's buffer.

    `on_unresponsive` is called in the input thread if the user presses Ctrl+C and the event loop doesn't handle it.
    Its argument is False for the first such press and True for later ones.
    """

    def __init__(self, on_unresponsive: Callable[[bool], None]) -> None:
        super().__init__(driver_class=TerminalDriver)
        self.on_unresponsive = on_unresponsive
        self.input_enabled = threading.Event()
        self.early_bytes = b""  # bytes that an earlier reader took from the terminal and did not use


class TerminalWriter:
    """Writes output in a separate thread, so that drawing never waits for the terminal.

    If too much output is buffered, frames are skipped and `redraw` is called once the terminal has caught up.
    """

    def __init__(self, file: int, redraw: Callable[[], None]) -> None:
        self._file = file
        self._redraw = redraw
        self._buffer: list[str] = []
        self._buffered_characters = 0
        self._has_skipped = False
        self._is_writing = False
        self._changed = threading.Condition()
        threading.Thread(target=self._write_buffered, name="terminal output", daemon=True).start()

    def write(self, text: str) -> None:
        """Buffer text for the writer thread."""
        with self._changed:
            if self._buffered_characters > _MAX_BUFFERED_CHARACTERS and len(text) > _MIN_FRAME_CHARACTERS:
                self._has_skipped = True
                return
            self._buffer.append(text)
            self._buffered_characters += len(text)
            self._changed.notify_all()

    def flush(self, timeout_seconds: float) -> None:
        """Wait until all buffered text is written, but no longer than `timeout_seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._buffer and not self._is_writing, timeout_seconds)

    def _write_buffered(self) -> None:
        while True:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._buffer)
                data = "".join(self._buffer).encode("utf-8", "replace")
                self._buffer.clear()
                self._buffered_characters = 0
                self._is_writing = True
                has_skipped, self._has_skipped = self._has_skipped, False
            with suppress(OSError):  # the terminal is gone, so the output is not needed
                while data:
                    data = data[os.write(self._file, data) :]
            if has_skipped:
                self._redraw()


class TerminalDriver(LinuxDriver):
    """Textual's driver for Linux and macOS, with its own input thread and output thread."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)  # pyright: ignore[reportUnknownMemberType]
        assert isinstance(app, InputGatedApp)
        self._gated_app = app
        self._writer = TerminalWriter(sys.stderr.fileno(), self._redraw)
        self._wake_reader, self._wake_writer = os.pipe()
        self._paste_text: str | None = None
        self._parser = XTermParser(debug)
        self._quit_pending_since = 0.0
        self._ignored_quits = 0

    def write(self, data: str) -> None:
        """Buffer output for the writer thread. Never waits."""
        self._writer.write(data)

    def stop_application_mode(self) -> None:
        """Restore the terminal's normal mode."""
        super().stop_application_mode()
        self._writer.flush(_FLUSH_TIMEOUT_SECONDS)

    def disable_input(self) -> None:
        """Stop reading keys."""
        self._gated_app.input_enabled.set()
        os.write(self._wake_writer, b".")
        super().disable_input()  # waits for the input thread
        os.read(self._wake_reader, 1)

    def run_input_thread(self) -> None:
        """Read keys until input is disabled or the terminal is closed."""
        self._gated_app.input_enabled.wait()
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._process_input(decode(self._gated_app.early_bytes))
        timeout: float | None = None
        while not self.exit_event.is_set():
            ready, _, _ = select.select([self.fileno, self._wake_reader], [], [], timeout)
            timeout = None
            if self._wake_reader in ready:
                return
            if ready:
                data = self._read_bytes()
                if not data:
                    self._loop.call_soon_threadsafe(self._app.exit)
                    return
                self._process_input(decode(data))
                timeout = _ESCAPE_SECONDS
            else:
                self._post_messages(self._parser.tick())
                self._warn_unresponsive()
            if self._quit_pending_since:
                timeout = _ESCAPE_SECONDS

    def _handle_quit_key(self) -> None:
        """Check that the event loop handles Ctrl+C. If the loop is blocked, only the input thread can react."""
        if not self._quit_pending_since:
            self._quit_pending_since = time.monotonic()
            self._ignored_quits = 0
            self._loop.call_soon_threadsafe(self._mark_responsive)
        elif time.monotonic() - self._quit_pending_since > _UNRESPONSIVE_SECONDS:
            self._ignored_quits += 1
            self._gated_app.on_unresponsive(self._ignored_quits > 1)

    def _mark_responsive(self) -> None:
        self._quit_pending_since = 0.0

    def _warn_unresponsive(self) -> None:
        since = self._quit_pending_since
        if since and not self._ignored_quits and time.monotonic() - since > _UNRESPONSIVE_SECONDS:
            self.write(_UNRESPONSIVE_TEXT)

    def _read_bytes(self) -> bytes:
        try:
            return os.read(self.fileno, _READ_BYTES)
        except OSError:
            return b""

    def _process_input(self, text: str) -> None:
        """Pass input to the key parser. Pasted text bypasses the parser, which is slow for long text."""
        if self._paste_text is None and any(key in text for key in _QUIT_KEYS):
            self._handle_quit_key()
        while text:
            if self._paste_text is None:
                before, start, text = text.partition(_PASTE_START)
                if before:
                    self._post_messages(self._parser.feed(before))
                self._paste_text = "" if start else None
            else:
                self._paste_text, end, text = (self._paste_text + text).partition(_PASTE_END)
                if end:
                    self.process_message(events.Paste(sanitize_input(self._paste_text)))
                    self._paste_text = None

    def _post_messages(self, messages: Any) -> None:
        for message in messages:
            self.process_message(message)

    def _redraw(self) -> None:
        with suppress(RuntimeError):  # the loop is closed because the app has exited
            self._loop.call_soon_threadsafe(self._app.refresh)
