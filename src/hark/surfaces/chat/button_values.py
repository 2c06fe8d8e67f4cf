"""What buttons stand for, where a platform takes only short values."""

import hashlib

from hark.surfaces.chat.recent_values import Recent

MARK = "~"  # no value of ours begins with it


class ButtonValues:
    """Gives a value that is too long a short name, and remembers it: after a restart that button is too old."""

    def __init__(self, longest_bytes: int) -> None:
        self._longest_bytes = longest_bytes
        self._long: Recent[str] = Recent()

    def shortened(self, value: str) -> str:
        """Return what to send for a value."""
        if value and len(value.encode()) <= self._longest_bytes and not value.startswith(MARK):
            return value
        name = MARK + hashlib.sha256(value.encode()).hexdigest()[:40]
        self._long.put(name, value)
        return name

    def of(self, sent: str) -> str:
        """Return the value that was sent so; "" when it was forgotten."""
        return (self._long.get(sent) or "") if sent.startswith(MARK) else sent
