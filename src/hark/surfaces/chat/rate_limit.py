"""How often something may be done: what can wait is told for how long, what can't is only counted."""

from time import monotonic

from hark.protocol.chat import ChatError, Outgoing
from hark.surfaces.chat.reply import STOP_VALUE

SOON = "Edits of a reply that grows wait for their place here."


def is_growing(message: Outgoing) -> bool:
    """Tell whether a message is a reply that still grows: what it shows now is shown again soon, with more."""
    return any(button.value.startswith(STOP_VALUE) for button in message.buttons)


class RateLimit:
    """So many at once, then so many a second. The last `kept` places are for what can't wait."""

    def __init__(self, at_once: int, per_second: float, kept: int = 0) -> None:
        self._at_once = at_once
        self._per_second = per_second
        self._kept = kept
        self._places = float(at_once)
        self._at = monotonic()

    def count(self) -> None:
        """Something is done that can't wait."""
        self._places = self._now() - 1

    def wait(self) -> float:
        """Return for how many seconds to wait with something that can; 0 when it may be done now."""
        return max(0.0, (1 + self._kept - self._now()) / self._per_second)

    def _now(self) -> float:
        now = monotonic()
        self._places = min(float(self._at_once), self._places + (now - self._at) * self._per_second)
        self._at = now
        return self._places


def take_place(message: Outgoing, *paces: RateLimit) -> None:
    """Count a message that is about to be sent or edited.

    Raises:
        ChatError: It grows, and has no place now; it says when there is one.
    """
    seconds = max(pace.wait() for pace in paces) if is_growing(message) else 0.0
    if seconds > 0:
        raise ChatError(SOON, retry_after=seconds)
    for pace in paces:
        pace.count()
