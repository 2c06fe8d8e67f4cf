"""The ports to what differs from run to run: time and names."""

from typing import Protocol


class Clock(Protocol):
    """The time of day, and fresh names; a simulation brings its own."""

    def now(self) -> float:
        """Return Unix time in seconds."""
        ...

    def new_id(self) -> str:
        """Return a name that nothing else has."""
        ...
