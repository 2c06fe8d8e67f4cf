"""Who is told of every turn's end in this process, whatever session it is of."""

from collections.abc import Callable

from hark.protocol.records import TurnEnded


class Ends:
    """Listeners that count: each is called once for a turn, when its end is durable, and must not wait."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[TurnEnded], None]] = []

    def listen(self, listener: Callable[[TurnEnded], None]) -> None:
        """Tell this one, too, from now on."""
        self._listeners.append(listener)

    def tell(self, end: TurnEnded) -> None:
        """Tell all of them."""
        for listener in self._listeners:
            listener(end)
