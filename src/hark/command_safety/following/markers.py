"""Marker characters for parts of a text that are unknown until the command runs."""

import re

# Private-use characters, which users don't type. Text that does contain one counts as unknown, which is safe.
UNKNOWN = "\ue000"
NETWORK = "\ue001"
SECRET = "\ue002"  # noqa: S105 (a marker)
DECODED = "\ue003"
ENDLESS = "\ue004"
_ALL_MARKERS = (UNKNOWN, NETWORK, SECRET, DECODED, ENDLESS)
_MARKER_PATTERN = re.compile(f"[{UNKNOWN}-{ENDLESS}]")


def is_unknown(text: str) -> bool:
    """Return whether the text has unknown parts."""
    return _MARKER_PATTERN.search(text) is not None


def markers_in(*texts: str) -> str:
    """Return the distinct markers in these texts. Text derived from them must carry the same markers."""
    return "".join(mark for mark in _ALL_MARKERS if any(mark in text for text in texts))


def remove_markers(text: str) -> str:
    """Return the text without markers, as if all unknown parts were empty."""
    return _MARKER_PATTERN.sub("", text)


def printable(text: str) -> str:
    """Return the text for display, with an ellipsis in place of each marker."""
    return _MARKER_PATTERN.sub("…", text)
