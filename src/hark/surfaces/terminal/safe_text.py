"""Text of others, made safe to show: no letter of it is ever a command to the terminal."""

import re

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

# Whole sequences first, so that nothing is left of "red text" but the text; then every control character that is left.
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]|\x9b[0-?]*[ -/]*[@-~]"
)
# Line and paragraph separators, and what turns the direction of writing round: "gpj.exe" must not look like "exe.jpg".
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_OVERWRITTEN = re.compile(r"^.*\r(?!$)", re.MULTILINE)


def safe(text: str) -> str:
    """Return text as it may be shown: line ends and tabs are kept, of a line that was written over the last state."""
    if _CONTROL.search(text) is None:
        return text
    text = _SEQUENCE.sub("", text).replace("\r\n", "\n")
    if "\r" in text:
        text = _OVERWRITTEN.sub("", text)
    return _CONTROL.sub("", text)


def safe_line(text: str, most: int = 300) -> str:
    """Return text in one line of so many characters at most."""
    line = " ".join(safe(text[: most * 4]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def typed_text(text: str) -> str:
    """Return what a person typed or pasted, without what is no text."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


class NoControls(LineFilter):
    """The last gate before the terminal: whatever a widget draws, no control character passes."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments without them."""
        if all(control is not None or _CONTROL.search(text) is None for text, _, control in segments):
            return segments
        return [
            Segment(text if control is not None else _CONTROL.sub(" ", text), style, control)
            for text, style, control in segments
        ]
