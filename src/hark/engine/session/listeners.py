"""Callbacks for events from all sessions in this process."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Listeners(Generic[T]):
    """Callbacks for one kind of event. Each is called synchronously, once per event, and must not block."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[T], None]] = []

    def add(self, callback: Callable[[T], None]) -> None:
        """Call `callback` for every later event."""
        self._listeners.append(callback)

    def remove(self, callback: Callable[[T], None]) -> None:
        """Stop calling `callback`."""
        self._listeners.remove(callback)

    def notify(self, event: T) -> None:
        """Call all callbacks with an event."""
        for callback in self._listeners:
            callback(event)
