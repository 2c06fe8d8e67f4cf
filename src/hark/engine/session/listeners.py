"""Who is told of something that happens to any session of this process."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Listeners(Generic[T]):
    """Listeners to one kind of thing: each is called once for each, at once, and must not wait."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[T], None]] = []

    def listen(self, listener: Callable[[T], None]) -> None:
        """Tell this one, too, from now on."""
        self._listeners.append(listener)

    def leave(self, listener: Callable[[T], None]) -> None:
        """Tell this one no more."""
        self._listeners.remove(listener)

    def tell(self, news: T) -> None:
        """Tell all of them."""
        for listener in self._listeners:
            listener(news)
