"""Text in terminal columns: single lines of a known width, without control characters."""

import os
import sys
import unicodedata
from dataclasses import dataclass

from hark.text.character_width import character_width
from hark.text.graphemes import safe_cut

DEFAULT_COLUMNS = 80
MAX_COLUMNS = 160
RED, BOLD, DIM, CYAN = "31", "1", "2", "36"


@dataclass(frozen=True, slots=True)
class TerminalStyle:
    """The capabilities of the terminal: width, colours and Unicode."""

    columns: int = DEFAULT_COLUMNS
    has_colour: bool = False
    has_unicode: bool = True

    def paint(self, text: str, ansi_colour: str) -> str:
        """Return the text in a colour, given as ANSI parameters, or unchanged if colours are off."""
        return f"\x1b[{ansi_colour}m{text}\x1b[0m" if self.has_colour and text and ansi_colour else text

    def replace_ellipsis(self, text: str) -> str:
        """Return the text with the ellipsis of `truncate` replaced by `~` if the terminal lacks Unicode."""
        return text if self.has_unicode else text.replace("…", "~")


def detect_output_style() -> TerminalStyle:
    """Return the style of standard output. Colours are used only on a terminal, and only if NO_COLOR is not set."""
    is_terminal = sys.stdout.isatty()
    columns_setting = os.environ.get("COLUMNS", "")
    columns = (
        os.get_terminal_size(sys.stdout.fileno()).columns
        if is_terminal
        else int(columns_setting)
        if columns_setting.isdecimal()
        else 0
    )
    has_colour = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    has_unicode = "utf" in (sys.stdout.encoding or "").lower()
    return TerminalStyle(min(max(columns or DEFAULT_COLUMNS, 40), MAX_COLUMNS), has_colour, has_unicode)


def to_one_line(text: str) -> str:
    """Return the text as one line without control characters."""
    return " ".join("".join(_printable_character(character) for character in text).split())


def to_plain_text(text: str) -> str:
    """Return the text with its line breaks, but without control characters that a terminal would interpret."""
    return "".join(character if character == "\n" else _printable_character(character) for character in text)


def display_width(text: str) -> int:
    """Return how many terminal columns the text occupies."""
    if text.isascii():
        return len(text)
    return sum(character_width(character) for character in text)


def truncate(text: str, columns: int) -> str:
    """Return the text as one line of at most `columns` columns, with an ellipsis if it was shortened."""
    line = to_one_line(text)
    if display_width(line) <= columns:
        return line
    used_columns = 1
    for position, character in enumerate(line):
        used_columns += character_width(character)
        if used_columns > columns:
            return f"{line[: safe_cut(line, position)]}…" if columns > 0 else ""
    return line


def wrap_to_columns(text: str, columns: int) -> list[str]:
    """Return the text as lines of at most `columns` columns. A word that is too long is truncated."""
    lines = [""]
    for word in to_one_line(text).split():
        longer = f"{lines[-1]} {word}".lstrip()
        if display_width(longer) <= columns:
            lines[-1] = longer
        elif lines[-1]:
            lines.append(truncate(word, columns))
        else:
            lines[-1] = truncate(word, columns)
    return lines


def fit_to_columns(text: str, columns: int) -> str:
    """Return the text as one line of exactly `columns` columns."""
    line = truncate(text, columns)
    return line + " " * (columns - display_width(line))


def _printable_character(character: str) -> str:
    if character.isprintable():
        return character
    # Other characters, such as ESC or direction overrides, would change the display of the text around them.
    return " " if character.isspace() else "�" if unicodedata.category(character) != "Cf" else ""
