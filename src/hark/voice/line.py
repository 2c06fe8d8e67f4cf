"""A line of people's messages: who came first is served first, however long the one before takes."""

import anyio


class Place:
    """A place in a line. Whoever took it leaves it, however it ends."""

    def __init__(self, line: "Line") -> None:
        self._line = line
        self._turn = anyio.Event()

    @property
    def is_first(self) -> bool:
        """Whether nobody is before it."""
        return self._turn.is_set()

    def is_before(self, other: "Place") -> bool:
        """Whether it is still in the line, and before another one."""
        return self._line.is_before(self, other)

    async def reached(self) -> None:
        """Return when all that came before have left. Safe to cancel: the place is kept."""
        await self._turn.wait()

    def leave(self) -> None:
        """Let the next one go on. More than once is once."""
        self._line.remove(self)

    def call(self) -> None:
        """It is this one's turn."""
        self._turn.set()


class Line:
    """Places in the order in which they were taken."""

    def __init__(self) -> None:
        self._places: list[Place] = []

    @property
    def is_empty(self) -> bool:
        """Whether nobody is in it."""
        return not self._places

    def join(self) -> Place:
        """Return the last place."""
        place = Place(self)
        self._places.append(place)
        self._places[0].call()
        return place

    def is_before(self, one: Place, other: Place) -> bool:
        """Whether one is before the other; both must be in it."""
        return one in self._places and self._places.index(one) < self._places.index(other)

    def remove(self, place: Place) -> None:
        """Take a place out of it, wherever it is."""
        if place in self._places:
            self._places.remove(place)
            if self._places:
                self._places[0].call()
