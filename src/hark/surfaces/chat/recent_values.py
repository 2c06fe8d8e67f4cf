"""A cache of recent values, and short names for button values that are too long for a platform."""

import hashlib
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

V = TypeVar("V")

MAX_VALUES = 10_000
SHORT_NAME_PREFIX = "~"  # No other button value begins with this prefix.


class RecentValues(Generic[V]):
    """A cache of the most recently stored values, up to a limit."""

    def __init__(self, max_values: int = MAX_VALUES) -> None:
        self._max_values = max_values
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, name: Hashable) -> V | None:
        """Return a value, or None if it is unknown."""
        return self._values.get(name)

    def put(self, name: Hashable, value: V) -> None:
        """Store a value. When the limit is exceeded, the oldest value is dropped."""
        self._values[name] = value
        self._values.move_to_end(name)
        if len(self._values) > self._max_values:
            self._values.popitem(last=False)


class ButtonValues:
    """Replaces long button values with short names. A restart loses the names, so older buttons expire."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._long: RecentValues[str] = RecentValues()

    def shorten(self, value: str) -> str:
        """Return the value, or a short name if it is too long to be sent."""
        if value and len(value.encode()) <= self._max_bytes and not value.startswith(SHORT_NAME_PREFIX):
            return value
        name = SHORT_NAME_PREFIX + hashlib.sha256(value.encode()).hexdigest()[:40]
        self._long.put(name, value)
        return name

    def restore(self, sent: str) -> str:
        """Return the value stored under a short name that was sent to the platform, or "" if it has been dropped."""
        return (self._long.get(sent) or "") if sent.startswith(SHORT_NAME_PREFIX) else sent
