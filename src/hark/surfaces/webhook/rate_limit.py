"""How often one program may talk."""

import time
from collections import deque
from collections.abc import Callable

from hark.surfaces.web.api.errors import ApiError

MINUTE_SECONDS = 60.0


class MinuteLimit:
    """Counts messages of the last minute."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._times: deque[float] = deque()

    def step(self) -> None:
        """Count one more.

        Raises:
            ApiError: There were too many; it says when to come again.
        """
        now = self._clock()
        while self._times and now - self._times[0] > MINUTE_SECONDS:
            self._times.popleft()
        if len(self._times) >= self._per_minute:
            wait = max(1, round(MINUTE_SECONDS - (now - self._times[0]))) if self._times else int(MINUTE_SECONDS)
            words = f"This hook takes {self._per_minute} messages a minute ([surfaces.webhook] per_minute)."
            raise ApiError(429, "too_fast", words, {"Retry-After": str(wait)})
        self._times.append(now)
