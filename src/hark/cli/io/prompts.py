"""Questions to a person at a terminal, or to a pipe that has the answers ready."""

import signal
from collections.abc import Sequence
from getpass import getpass
from typing import TextIO

from hark.app.settings import SettingsError
from hark.app.shutdown import INTERRUPTED

LEFT = "You left before the end: nothing was written."


class TerminalPrompts:
    """Asks line by line. An empty line, or the end of a pipe, is the answer that is offered.

    A person who ends the input (Ctrl-D) wants to leave: that raises SettingsError, whatever was asked.
    """

    def __init__(self, source: TextIO, out: TextIO) -> None:
        self._source = source
        self._out = out

    @property
    def is_person(self) -> bool:
        """Whether somebody sits there, and not a pipe."""
        return self._source.isatty()

    def say(self, text: str) -> None:
        """Print a line."""
        self._out.write(text + "\n")
        self._out.flush()

    def text(self, question: str, offered: str = "") -> str:
        """Return the answer."""
        return self._ask(self._prompt(question, offered)) or offered

    def secret(self, question: str, offered: str = "") -> str:
        """Return the answer, which a terminal does not show."""
        if not self.is_person:
            return self.text(question, offered)
        # Ctrl-C has to come through Python, so that the terminal shows again what is typed.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return getpass(self._prompt(f"{question}; it is not shown", offered)).strip() or offered
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None
        except EOFError:
            self.say("")
            raise SettingsError(LEFT) from None
        finally:
            signal.signal(signal.SIGINT, before)

    def yes(self, question: str) -> bool:
        """Tell whether the answer is yes; no is what is offered."""
        return self._ask(f"{question} [y/N] ").lower() in ("y", "yes")

    def choice(self, question: str, lines: Sequence[str]) -> int:
        """Return which line was chosen; the first is what is offered.

        Raises:
            SettingsError: A pipe has an answer that is none.
        """
        self.say(question)
        for number, line in enumerate(lines, 1):
            self.say(f"  {number}. {line}")
        while True:
            answer = self.text("Number", "1")
            if answer.isdecimal() and 1 <= int(answer) <= len(lines):
                return int(answer) - 1
            problem = f"{answer!r} is none of the numbers from 1 to {len(lines)}."
            if not self.is_person:
                raise SettingsError(problem)
            self.say(problem)

    def _prompt(self, question: str, offered: str) -> str:
        return f"{question} [{offered}]: " if offered else f"{question}: "

    def _ask(self, prompt: str) -> str:
        self._out.write(prompt)
        self._out.flush()
        line = self._source.readline()
        if not line or not self.is_person:
            self._out.write("\n")  # nobody pressed Enter
        if not line and self.is_person:
            raise SettingsError(LEFT)
        return line.strip()
