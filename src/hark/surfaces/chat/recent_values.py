"""Values by name, of which the oldest are forgotten."""

from collections import OrderedDict
from typing import Generic, TypeVar

V = TypeVar("V")

MOST = 10_000


class Recent(Generic[V]):
    """Keeps what was put last."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._values: OrderedDict[str, V] = OrderedDict()

    def get(self, name: str) -> V | None:
        """Return a value, if it is known."""
        return self._values.get(name)

    def put(self, name: str, value: V) -> None:
        """Keep a value."""
        self._values[name] = value
        self._values.move_to_end(name)
        if len(self._values) > self._most:
            self._values.popitem(last=False)

    def forget(self, name: str) -> V | None:
        """Keep a value no longer; return it, if it was known."""
        return self._values.pop(name, None)
