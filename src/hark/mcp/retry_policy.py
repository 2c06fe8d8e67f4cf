"""Why a server can't be used, and how often Hark retries it."""

from msgspec import Struct

from hark.timing.backoff import Backoff


class ServerFailure(Exception):
    """A server can't be reached or has stopped. The text says why. `is_final`: automatic retries would not help."""

    def __init__(self, text: str, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final


class RetryPolicy(Struct, frozen=True):
    """The retry settings for a server.

    `first_seconds` is the first delay, which doubles with each failure and varies randomly by the factor `spread`.
    After `tries` consecutive failures the server counts as failed. It is then retried every `failed_seconds`, and
    earlier for a call or a new session, but not within `rest_seconds` of a failed retry. A response, or being connected
    for `steady_seconds`, resets the count.
    """

    first_seconds: float = 0.5
    tries: int = 5
    spread: float = 0.2
    steady_seconds: float = 10.0
    rest_seconds: float = 5.0
    failed_seconds: float = 60.0

    def create_backoff(self) -> Backoff:
        """Return the delays between the first attempts."""
        return Backoff(self.first_seconds, self.failed_seconds, self.spread)

    def create_failed_backoff(self) -> Backoff:
        """Return the delays between the retries of a failed server."""
        return Backoff(self.failed_seconds, self.failed_seconds, self.spread)
