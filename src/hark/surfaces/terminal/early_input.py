"""The first line: what is typed while the terminal app is still being loaded is seen, and kept."""

import codecs
import os
import re
import select
import signal
import termios
import threading
import unicodedata
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from hark.text.safe_text import typed_text

PROMPT = "› "
ESCAPE_MS = "25"
_PIECE_BYTES = 65_536
_ERASE = b"\r\x1b[J"
_BEGIN = b"\x1b[?2004h"  # pastes come in brackets, so that a line end in one is no Enter
_END = b"\x1b[?2004l"
_PASTE = re.compile(r"\x1b\[200~(.*?)\x1b\[201~", re.DOTALL)
_KEY = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O])")  # a key that is no letter: it means nothing here yet
_INPUT_FLAGS = termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON
_LOCAL_FLAGS = termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN


class EarlyInput:
    """What was typed before the app was there: texts with Enter behind them, and the text that is being typed."""

    def __init__(self, sent: Iterable[str] = (), text: str = "") -> None:
        self.sent = list(sent)
        self.text = text
        self.is_left = False
        self._begun = ""  # a key or a paste of which only the beginning has come
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def rest(self) -> bytes:
        """The bytes that mean nothing yet: they come before those that wait in the terminal for the next reader."""
        return self._begun.encode() + self._decoder.getstate()[0]

    def read(self, data: bytes) -> None:
        """Take what came from the keyboard at once: a line end inside of it was pasted, one behind it was typed."""
        piece = f"{self._begun}{self._decoder.decode(data)}"
        if "\x1b[200~" in piece and "\x1b[201~" not in piece:
            self._begun = piece
            return
        self._begun = ""
        place = 0
        for paste in _PASTE.finditer(piece):
            self._keys(piece[place : paste.start()])
            self.text += typed_text(paste[1])
            place = paste.end()
        self._keys(piece[place:])

    def _keys(self, piece: str) -> None:
        piece = _KEY.sub("", piece)
        if "\x1b" in piece:  # the beginning of a key whose end is still to come
            piece, _, rest = piece.partition("\x1b")
            self._begun = "\x1b" + rest if rest else ""
        for place, character in enumerate(piece):
            self._key(character, is_last=place == len(piece) - 1)

    def _key(self, character: str, *, is_last: bool) -> None:
        match character:
            case "\r" if is_last:
                if self.text.strip():
                    self.sent.append(self.text)
                self.text = ""
            case "\r" | "\n":
                self.text += "\n"
            case "\x7f" | "\b":
                self.text = self.text[:-1]
            case "\x15":
                self.text = ""
            case "\x03":
                self.is_left = not self.text
                self.text = ""
            case "\x04":
                self.is_left = not self.text
            case _:
                self.text += typed_text(character)


class FirstLine:
    """An input line from the first moment on, in a thread of its own, until the app takes over or `give_back`.

    The terminal stays in the mode in which keys come at once: nothing that is typed in between gets another meaning.
    """

    def __init__(self) -> None:
        """Raises termios.error where there is no terminal."""
        self.usual = termios.tcgetattr(0)
        self._typed = EarlyInput()
        self._woken, self._wake = os.pipe()
        self._is_over = False
        self._let_keys_through()
        self._thread = threading.Thread(target=self._run, name="first line", daemon=True)
        self._thread.start()

    @property
    def is_left(self) -> bool:
        """True when the person wants to leave again."""
        return self._typed.is_left

    def take(self) -> EarlyInput:
        """End it; return what was typed."""
        if not self._is_over:
            self._is_over = True
            os.write(self._wake, b".")
            self._thread.join()
            with suppress(OSError):
                os.write(1, _END + _ERASE)
        return self._typed

    def give_back(self) -> None:
        """End it, and have the terminal as it was."""
        self.take()
        self.restore()

    def restore(self) -> None:
        """Have the terminal's modes as they were; from whatever thread."""
        with suppress(termios.error):  # it is gone
            termios.tcsetattr(0, termios.TCSANOW, self.usual)

    def _let_keys_through(self) -> None:
        """Have each key come at once, as it is, and unseen: it is shown by us."""
        mode: list[Any] = list(self.usual)
        mode[0] &= ~_INPUT_FLAGS
        mode[3] &= ~_LOCAL_FLAGS
        termios.tcsetattr(0, termios.TCSANOW, mode)
        os.write(1, _BEGIN)

    def _run(self) -> None:
        while not self._typed.is_left:
            _draw(self._typed)
            ready, _, _ = select.select([0, self._woken], [], [])
            if self._woken in ready:
                return
            try:
                piece = os.read(0, _PIECE_BYTES)
            except OSError:
                piece = b""
            self._typed.read(piece)
            if not piece or self._typed.is_left:
                self._leave(piece)
                return

    def _leave(self, piece: bytes) -> None:
        """The person wants to leave: at once if nothing has begun yet, else as after any Ctrl+C."""
        self._typed.is_left = True
        if b"\x03" in piece:
            with suppress(OSError):
                os.write(1, _END + _ERASE)
            self.restore()
            os.kill(os.getpid(), signal.SIGINT)


def typed_while(load: Callable[[], object]) -> FirstLine:
    """Show an input line and `load` meanwhile; return the line, which is still live.

    Raises:
        Exception: What `load` raised; the terminal is as it was.
    """
    os.environ.setdefault("ESCDELAY", ESCAPE_MS)  # Esc stops: nobody should wait for it
    line = FirstLine()
    try:
        load()
    except BaseException:
        line.give_back()
        raise
    return line


def _draw(typed: EarlyInput) -> None:
    line = (typed.text or (typed.sent[-1] if typed.sent else "")).rpartition("\n")[2].replace("\t", " ")
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
        os.write(1, _ERASE + f"{PROMPT}{shown}".encode())
