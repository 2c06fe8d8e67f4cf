"""Marks in a text for the parts of it that can't be known before the command runs."""

import re

# Characters for private use: nobody types them, and if somebody does, that text counts as unknown, which is safe.
UNKNOWN = "\ue000"
NETWORK = "\ue001"
SECRET = "\ue002"  # noqa: S105 (a mark)
DECODED = "\ue003"
ENDLESS = "\ue004"
_ALL = (UNKNOWN, NETWORK, SECRET, DECODED, ENDLESS)
_MARKS = re.compile(f"[{UNKNOWN}-{ENDLESS}]")


def is_unknown(text: str) -> bool:
    """Tell whether a part of the text isn't known."""
    return _MARKS.search(text) is not None


def marks_of(*texts: str) -> str:
    """Return the marks in these texts, each once: what is derived from them carries these."""
    return "".join(mark for mark in _ALL if any(mark in text for text in texts))


def without_marks(text: str) -> str:
    """Return the text as it is when all that isn't known is empty."""
    return _MARKS.sub("", text)


def shown(text: str) -> str:
    """Return the text as a person may read it."""
    return _MARKS.sub("…", text)
