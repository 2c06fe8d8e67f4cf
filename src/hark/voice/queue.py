"""A line of people's messages: who came first is served first, however long the one before takes."""

import anyio


class QueueSlot:
    """A place in a line. Whoever took it leaves it, however it ends."""

    def __init__(self, line: "VoiceQueue") -> None:
        self.is_stopped = False  # a stop came behind it, before its turn
        self._line = line
        self._turn = anyio.Event()

    def before(self) -> "list[QueueSlot]":
        """Return the places before this one."""
        return self._line.before(self)

    async def reached(self) -> None:
        """Return when all that came before have left. Safe to cancel: the place is kept."""
        await self._turn.wait()

    def leave(self) -> None:
        """Let the next one go on. More than once is once."""
        self._line.remove(self)

    def call(self) -> None:
        """It is this one's turn."""
        self._turn.set()


class VoiceQueue:
    """Places in the order in which they were taken."""

    def __init__(self) -> None:
        self._places: list[QueueSlot] = []

    @property
    def length(self) -> int:
        """How many are in it."""
        return len(self._places)

    def join(self) -> QueueSlot:
        """Return the last place."""
        place = QueueSlot(self)
        self._places.append(place)
        self._places[0].call()
        return place

    def before(self, place: QueueSlot) -> list[QueueSlot]:
        """Return the places before one that is in it."""
        return self._places[: self._places.index(place)]

    def remove(self, place: QueueSlot) -> None:
        """Take a place out of it, wherever it is."""
        if place in self._places:
            self._places.remove(place)
            if self._places:
                self._places[0].call()
