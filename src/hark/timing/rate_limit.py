"""How often something may be done."""

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic


class RateLimit:
    """A token bucket: `burst` actions at once, then `per_second`. It never waits itself.

    The last `reserve` tokens are for actions that can't wait.
    """

    def __init__(
        self, burst: int, per_second: float, reserve: int = 0, clock: Callable[[], float] | None = None
    ) -> None:
        self._burst = burst
        self._per_second = per_second
        self._reserve = reserve
        self._clock = clock or (lambda: monotonic())
        self._tokens = float(burst)
        self._at = self._clock()

    def count(self) -> None:
        """Count an action that can't wait, whether there is a token or not."""
        self._tokens = self._now() - 1

    def wait_seconds(self) -> float:
        """Return how long an action that can wait has to; 0 if it may be done now."""
        missing = 1 + self._reserve - self._now()
        if missing <= 0:
            return 0.0
        return missing / self._per_second if self._per_second else float("inf")

    def take(self) -> bool:
        """Count an action if it may be done now; return whether it may."""
        is_allowed = self.wait_seconds() <= 0
        if is_allowed:
            self.count()
        return is_allowed

    def _now(self) -> float:
        now = self._clock()
        self._tokens = min(float(self._burst), self._tokens + (now - self._at) * self._per_second)
        self._at = now
        return self._tokens


class RateLimits:
    """A rate limit for each key. The keys that were used least recently are forgotten."""

    def __init__(self, make: Callable[[], RateLimit], most_keys: int = 10_000) -> None:
        self._make = make
        self._most_keys = most_keys
        self._limits: OrderedDict[str, RateLimit] = OrderedDict()

    def of(self, key: str) -> RateLimit:
        """Return the limit of a key."""
        limit = self._limits.get(key)
        if limit is None:
            limit = self._limits[key] = self._make()
        self._limits.move_to_end(key)
        if len(self._limits) > self._most_keys:
            self._limits.popitem(last=False)
        return limit
