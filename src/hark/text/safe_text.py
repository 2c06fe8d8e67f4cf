"""Text from elsewhere, made safe to show: no control sequence in it reaches the terminal."""

import re

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


def without_controls(text: str, replacement: str = "") -> str:
    """Replace every control character except line feed and tab."""
    return _CONTROL.sub(replacement, text)
