"""The early input line: displays and stores text that the user types while the terminal app is still loading."""

import codecs
import os
import re
import select
import signal
import termios
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from hark.text.safe_text import sanitize_input

PROMPT = "› "
ESCAPE_DELAY_MS = "25"
_READ_BYTES = 65_536
_WRITE_SECONDS = 0.2
_ERASE_LINE = b"\r\x1b[J"
_ENABLE_PASTE = b"\x1b[?2004h"  # bracketed paste, so that a line break in pasted text is not Enter
_DISABLE_PASTE = b"\x1b[?2004l"
_PASTE = re.compile(r"\x1b\[200~(.*?)\x1b\[201~", re.DOTALL)
_EDITING_KEYS = re.compile("([\x03\x04\b\x15\x7f])")
_CONTROL_KEY = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O])")  # a key without a character, ignored here
_INPUT_FLAGS = termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON
_LOCAL_FLAGS = termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN


class EarlyInput:
    """Text typed before the app was ready: the texts sent with Enter, and the text still being typed."""

    def __init__(self, sent: Iterable[str] = (), text: str = "") -> None:
        self.sent = list(sent)
        self.text = text
        self.is_quit_requested = False
        self._incomplete = ""  # the first part of an incomplete key sequence or paste
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def unprocessed_bytes(self) -> bytes:
        """The bytes that have not been interpreted. They precede the next bytes read from the terminal."""
        return self._incomplete.encode() + self._decoder.getstate()[0]

    def feed(self, data: bytes) -> None:
        """Process the bytes of one read. A line break at the end is Enter; any other line break was pasted."""
        piece = f"{self._incomplete}{self._decoder.decode(data)}"
        if "\x1b[200~" in piece and "\x1b[201~" not in piece:
            self._incomplete = piece
            return
        self._incomplete = ""
        place = 0
        for paste in _PASTE.finditer(piece):
            self._feed_keys(piece[place : paste.start()])
            self.text += sanitize_input(paste[1])
            place = paste.end()
        self._feed_keys(piece[place:])

    def _feed_keys(self, piece: str) -> None:
        piece = _CONTROL_KEY.sub("", piece)
        if "\x1b" in piece:  # the first part of a key sequence
            piece, _, remainder = piece.partition("\x1b")
            self._incomplete = "\x1b" + remainder if remainder else ""
        for part in _EDITING_KEYS.split(piece.removesuffix("\r")):
            self._feed_part(part)
        if piece.endswith("\r"):
            if self.text.strip():
                self.sent.append(self.text)
            self.text = ""

    def _feed_part(self, part: str) -> None:
        match part:
            case "\x7f" | "\b":
                self.text = self.text[:-1]
            case "\x15":
                self.text = ""
            case "\x03":
                self.is_quit_requested = not self.text
                self.text = ""
            case "\x04":
                self.is_quit_requested = not self.text
            case _:
                self.text += sanitize_input(part.replace("\r", "\n"))


class EarlyInputLine:
    """An input line that works immediately, in its own thread, until the app or `finish_and_restore` stops it.

    `finish` leaves the terminal in raw mode, so that no key is lost or misinterpreted before the app takes over.
    """

    def __init__(self) -> None:
        """Save the terminal's modes. Raises termios.error if stdin is not a terminal."""
        self.saved_modes = termios.tcgetattr(0)
        self._input = EarlyInput()
        self._wake_reader, self._wake_writer = os.pipe()
        self._is_finished = False
        self._is_restored = False
        self._is_paste_enabled = False
        self._thread = threading.Thread(target=self._read_keys, name="first line", daemon=True)

    def start(self) -> None:
        """Switch to raw mode and start the input thread."""
        self._enter_raw_mode()
        self._thread.start()

    @property
    def is_quit_requested(self) -> bool:
        """True if the user asked to quit."""
        return self._input.is_quit_requested

    def finish(self) -> EarlyInput:
        """Stop the input thread and return the typed text."""
        if not self._is_finished:
            self._is_finished = True
            os.write(self._wake_writer, b".")
            self._thread.join()
            with suppress(OSError):
                os.write(1, _DISABLE_PASTE + _ERASE_LINE)
            self._is_paste_enabled = False
        return self._input

    def finish_and_restore(self) -> None:
        """Stop the input thread and restore the terminal's modes."""
        self.finish()
        self.restore()

    def restore(self) -> None:
        """Restore the terminal's modes. Safe to call from any thread and in a signal handler."""
        self._is_restored = True
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(0, termios.TCSANOW, self.saved_modes)
        if self._is_paste_enabled:
            write_to_terminal(_DISABLE_PASTE + _ERASE_LINE)

    def _enter_raw_mode(self) -> None:
        """Switch the terminal to raw mode without echo. The input thread draws the typed text."""
        mode: list[Any] = list(self.saved_modes)
        mode[0] &= ~_INPUT_FLAGS
        mode[3] &= ~_LOCAL_FLAGS
        termios.tcsetattr(0, termios.TCSANOW, mode)
        self._is_paste_enabled = True
        os.write(1, _ENABLE_PASTE)

    def _read_keys(self) -> None:
        while not self._input.is_quit_requested and not self._is_restored:
            _draw_line(self._input)
            ready, _, _ = select.select([0, self._wake_reader], [], [])
            if self._wake_reader in ready:
                return
            try:
                piece = os.read(0, _READ_BYTES)
            except OSError:
                piece = b""
            self._input.feed(piece)
            if not piece or self._input.is_quit_requested:
                self._request_quit(piece)
                return

    def _request_quit(self, data: bytes) -> None:
        """Record that the user asked to quit. Ctrl+C also raises SIGINT in this process."""
        self._input.is_quit_requested = True
        if b"\x03" in data:
            self.restore()
            os.kill(os.getpid(), signal.SIGINT)


def show_input_while_loading(
    load: Callable[[], object], exit_on_signals: Callable[[Callable[[], None]], None]
) -> EarlyInputLine:
    """Show an input line while `load` runs. Return the line, which continues to read keys.

    `exit_on_signals` makes signals call its argument, which restores the terminal, and end the process.

    Raises:
        Exception: Any error from `load`. The terminal is restored first.
    """
    os.environ.setdefault("ESCDELAY", ESCAPE_DELAY_MS)  # Esc stops the turn, so it must be recognised quickly
    line = EarlyInputLine()
    exit_on_signals(line.restore)
    line.start()
    try:
        load()
    except BaseException:
        line.finish_and_restore()
        raise
    return line


def write_to_terminal(data: bytes) -> None:
    """Write to the terminal, for at most 200 ms if it accepts no output. Safe to call in a signal handler."""
    with suppress(OSError):
        # Opened again, because the blocking mode of standard output is shared with other processes.
        terminal = os.open(os.ttyname(1), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        deadline = time.monotonic() + _WRITE_SECONDS
        while data and time.monotonic() < deadline:
            try:
                data = data[os.write(terminal, data) :]
            except BlockingIOError:
                time.sleep(0.001)
        os.close(terminal)


def _draw_line(early_input: EarlyInput) -> None:
    text = early_input.text or (early_input.sent[-1] if early_input.sent else "")
    line = text.rpartition("\n")[2].replace("\t", " ")
    try:
        room = os.get_terminal_size(1).columns - 3
    except OSError:
        room = 77
    shown = ""
    for character in reversed(line):
        room -= 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if room < 0:
            break
        shown = character + shown
    with suppress(OSError):
        os.write(1, _ERASE_LINE + f"{PROMPT}{shown}".encode())
