"""Interactive prompts, answered by a user at a terminal or by a program through a pipe."""

import termios
from collections.abc import Sequence
from getpass import getpass
from typing import TextIO

from hark.app.settings import SettingsError
from hark.app.shutdown import exit_on_signals

CANCELLED = "Cancelled. Nothing was written."


class TerminalPrompts:
    """Asks questions line by line. An empty line, or end of input in a pipe, selects the default answer.

    If a user ends the input (Ctrl-D), every method that asks raises SettingsError.
    """

    def __init__(self, source: TextIO, out: TextIO) -> None:
        self._source = source
        self._out = out

    @property
    def is_interactive(self) -> bool:
        """Whether the input is a terminal, not a pipe."""
        return self._source.isatty()

    def write_line(self, text: str) -> None:
        """Print a line."""
        self._out.write(text + "\n")
        self._out.flush()

    def ask_text(self, question: str, default: str = "") -> str:
        """Ask a question and return the text entered, or the default."""
        return self._ask(self._format_prompt(question, default)) or default

    def ask_secret(self, question: str, default: str = "") -> str:
        """Ask for a secret, which is not echoed on a terminal. Return the answer, or the default."""
        if not self.is_interactive:
            return self.ask_text(question, default)
        modes = termios.tcgetattr(self._source)
        exit_on_signals(lambda: termios.tcsetattr(self._source, termios.TCSANOW, modes))  # so that typed text shows
        try:
            return getpass(self._format_prompt(question, default)).strip() or default
        except EOFError:
            self.write_line("")
            raise SettingsError(CANCELLED) from None
        finally:
            exit_on_signals()

    def confirm(self, question: str) -> bool:
        """Ask a yes-or-no question and return whether the answer is yes. An empty answer means no."""
        return self._ask(f"{question} [y/N] ").lower() in ("y", "yes")

    def ask_choice(self, question: str, choices: Sequence[str]) -> int:
        """Ask for one of the numbered choices and return its index. The default is the first choice.

        Raises:
            SettingsError: A pipe supplied an invalid answer.
        """
        self.write_line(question)
        for number, line in enumerate(choices, 1):
            self.write_line(f"  {number}. {line}")
        while True:
            answer = self.ask_text("Number", "1")
            if answer.isdecimal() and 1 <= int(answer) <= len(choices):
                return int(answer) - 1
            problem = f"Please enter a number from 1 to {len(choices)}, not {answer!r}."
            if not self.is_interactive:
                raise SettingsError(problem)
            self.write_line(problem)

    def _format_prompt(self, question: str, default: str) -> str:
        return f"{question} [{default}]: " if default else f"{question}: "

    def _ask(self, prompt: str) -> str:
        self._out.write(prompt)
        self._out.flush()
        line = self._source.readline()
        if not line or not self.is_interactive:
            self._out.write("\n")  # no user pressed Enter
        if not line and self.is_interactive:
            raise SettingsError(CANCELLED)
        return line.strip()
