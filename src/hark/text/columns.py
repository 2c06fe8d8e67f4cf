"""Text in the columns of a terminal: one line, of a known width, without signs that could command the terminal."""

import os
import sys
import unicodedata
from dataclasses import dataclass

USUAL_COLUMNS = 80
WIDEST_COLUMNS = 160
RED, BOLD, DIM, CYAN = "31", "1", "2", "36"


@dataclass(frozen=True, slots=True)
class TerminalStyle:
    """What the reader's place can show."""

    columns: int = USUAL_COLUMNS
    has_colour: bool = False
    has_unicode: bool = True

    def paint(self, text: str, colour: str) -> str:
        """Return the text in a colour, given as the numbers of an ANSI sequence; plain where there are no colours."""
        return f"\x1b[{colour}m{text}\x1b[0m" if self.has_colour and text and colour else text

    def sayable(self, text: str) -> str:
        """Return the text without the one sign of `cut` that such a place may lack."""
        return text if self.has_unicode else text.replace("…", "~")


def look_of_output() -> TerminalStyle:
    """Return what standard output can show: colours on a terminal only, and not when NO_COLOR is set."""
    is_terminal = sys.stdout.isatty()
    said = os.environ.get("COLUMNS", "")
    columns = os.get_terminal_size(sys.stdout.fileno()).columns if is_terminal else int(said) if said.isdecimal() else 0
    has_colour = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    has_unicode = "utf" in (sys.stdout.encoding or "").lower()
    return TerminalStyle(min(max(columns or USUAL_COLUMNS, 40), WIDEST_COLUMNS), has_colour, has_unicode)


def one_line(text: str) -> str:
    """Return the text as one line without control characters."""
    return " ".join("".join(_shown(character) for character in text).split())


def plain_text(text: str) -> str:
    """Return the text with its lines, without the control characters that a terminal would obey."""
    return "".join(character if character == "\n" else _shown(character) for character in text)


def width(text: str) -> int:
    """Return how many columns the text takes."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def cut(text: str, columns: int) -> str:
    """Return the text as one line of at most so many columns."""
    line = one_line(text)
    if width(line) <= columns:
        return line
    taken, kept = 1, ""
    for character in line:
        taken += _width(character)
        if taken > columns:
            break
        kept += character
    return f"{kept}…" if columns > 0 else ""


def wrap(text: str, columns: int) -> list[str]:
    """Return the text as lines of at most so many columns; a longer word is cut."""
    lines = [""]
    for word in one_line(text).split():
        longer = f"{lines[-1]} {word}".lstrip()
        if width(longer) <= columns:
            lines[-1] = longer
        elif lines[-1]:
            lines.append(cut(word, columns))
        else:
            lines[-1] = cut(word, columns)
    return lines


def fit(text: str, columns: int) -> str:
    """Return the text as one line of exactly so many columns."""
    line = cut(text, columns)
    return line + " " * (columns - width(line))


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    # What is no letter at all, such as ESC or a sign that turns the writing around, would change what stands beside it.
    return " " if character.isspace() else "�" if unicodedata.category(character) != "Cf" else ""


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
