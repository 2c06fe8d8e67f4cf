"""Limits the rate of actions."""

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic


class RateLimit:
    """A token bucket: allows `burst` actions at once, then `per_second`. Its methods never wait.

    The last `reserve` tokens are for urgent actions.
    """

    def __init__(
        self, burst: int, per_second: float, reserve: int = 0, clock: Callable[[], float] | None = None
    ) -> None:
        self._burst = burst
        self._per_second = per_second
        self._reserve = reserve
        self._clock = clock or (lambda: monotonic())
        self._tokens = float(burst)
        self._refilled_at = self._clock()

    def consume_token(self) -> None:
        """Consume a token for an urgent action, even if no token is available."""
        self._tokens = self._refill() - 1

    def wait_seconds(self) -> float:
        """Return the seconds until a normal action is allowed, or 0 if it is allowed now."""
        missing = 1 + self._reserve - self._refill()
        if missing <= 0:
            return 0.0
        return missing / self._per_second if self._per_second else float("inf")

    def try_consume_token(self) -> bool:
        """Consume a token if an action is allowed now. Return whether the action is allowed."""
        is_allowed = self.wait_seconds() <= 0
        if is_allowed:
            self.consume_token()
        return is_allowed

    def _refill(self) -> float:
        now = self._clock()
        self._tokens = min(float(self._burst), self._tokens + (now - self._refilled_at) * self._per_second)
        self._refilled_at = now
        return self._tokens


class RateLimits:
    """A separate rate limit for each key. Drops the least recently used keys when there are too many."""

    def __init__(self, create_limit: Callable[[], RateLimit], max_keys: int = 10_000) -> None:
        self._create_limit = create_limit
        self._max_keys = max_keys
        self._limits: OrderedDict[str, RateLimit] = OrderedDict()

    def get_limit(self, key: str) -> RateLimit:
        """Return the rate limit for a key."""
        limit = self._limits.get(key)
        if limit is None:
            limit = self._limits[key] = self._create_limit()
        self._limits.move_to_end(key)
        if len(self._limits) > self._max_keys:
            self._limits.popitem(last=False)
        return limit
