"""Caches of recent values, and the button values of platforms that take only short ones."""

import hashlib
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

V = TypeVar("V")

MOST = 10_000
MARK = "~"  # no value of ours begins with it


class Recent(Generic[V]):
    """Keeps what was put last."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, name: Hashable) -> V | None:
        """Return a value, if it is known."""
        return self._values.get(name)

    def put(self, name: Hashable, value: V) -> None:
        """Keep a value."""
        self._values[name] = value
        self._values.move_to_end(name)
        if len(self._values) > self._most:
            self._values.popitem(last=False)


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
