"""Why a server can't be used, and how often it is tried again."""

from msgspec import Struct

from hark.timing.backoff import Backoff

LONGEST_SECONDS = 60.0  # between two tries


class ServerFailure(Exception):
    """A server could not be reached, or ended; the text says why. `is_final`: trying again by itself won't help."""

    def __init__(self, text: str, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final


class RetryPolicy(Struct, frozen=True):
    """The first wait doubles with each failure, and is spread a little; so many failures in a row are enough.

    `steady_seconds`: a server that was up for so long, or that has answered, failed for a new reason. `rest_seconds`:
    how long a server that was given up is left alone after a call has tried it in vain.
    """

    first_seconds: float = 0.5
    tries: int = 5
    spread: float = 0.2
    steady_seconds: float = 10.0
    rest_seconds: float = 5.0

    def backoff(self) -> Backoff:
        """Return the delays between tries."""
        return Backoff(self.first_seconds, LONGEST_SECONDS, self.spread)
