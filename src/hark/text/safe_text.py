"""Sanitizes untrusted text, so that no control sequence in it reaches the terminal."""

import re

from hark.text.graphemes import shorten

# Complete sequences are removed first, so that only the text remains, then every other control character.
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]|\x9b[0-?]*[ -/]*[@-~]"
)
# Line and paragraph separators, and characters that change the text direction: "gpj.exe" must not look like
# "exe.jpg".
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_OVERWRITTEN = re.compile(r"^.*\r(?!$)", re.MULTILINE)


def sanitize_text(text: str) -> str:
    """Return text that is safe to show, with line breaks and tabs. Text overwritten by a carriage return is removed."""
    if _CONTROL.search(text) is None:
        return text
    text = _SEQUENCE.sub("", text).replace("\r\n", "\n")
    if "\r" in text:
        text = _OVERWRITTEN.sub("", text)
    return _CONTROL.sub("", text)


def sanitize_line(text: str, max_characters: int = 300) -> str:
    """Return text as one safe line of at most `max_characters` characters."""
    line = " ".join(sanitize_text(text[: max_characters * 4]).split())
    return shorten(line, max_characters)


def sanitize_input(text: str) -> str:
    """Return typed or pasted text without control characters and with uniform line breaks."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def replace_control_characters(text: str, replacement: str = "") -> str:
    """Replace every control character except line feed and tab."""
    return _CONTROL.sub(replacement, text)
