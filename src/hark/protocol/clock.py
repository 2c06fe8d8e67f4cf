"""The port for the current time and unique ids."""

from typing import Protocol


class Clock(Protocol):
    """The current time, and new unique ids. A simulation replaces both."""

    def now(self) -> float:
        """Return the Unix time in seconds."""
        ...

    def new_id(self) -> str:
        """Return a new unique id."""
        ...
