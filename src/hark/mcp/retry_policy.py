"""Why a server can't be used, and how often Hark retries it."""

from msgspec import Struct

from hark.timing.backoff import Backoff

MAX_DELAY_SECONDS = 60.0  # between two attempts


class ServerFailure(Exception):
    """A server can't be reached or has stopped. The text says why. `is_final`: automatic retries would not help."""

    def __init__(self, text: str, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final


class RetryPolicy(Struct, frozen=True):
    """The retry settings for a server.

    `first_seconds` is the first delay, which doubles with each failure and varies randomly by the factor `spread`.
    After `tries` consecutive failures the server is parked: suspended until the next call. A response, or being
    connected for `steady_seconds`, resets the count. `rest_seconds` is the pause after a parked server fails again.
    """

    first_seconds: float = 0.5
    tries: int = 5
    spread: float = 0.2
    steady_seconds: float = 10.0
    rest_seconds: float = 5.0

    def create_backoff(self) -> Backoff:
        """Return the delays between attempts."""
        return Backoff(self.first_seconds, MAX_DELAY_SECONDS, self.spread)
