"""The real clock, and names that nothing else has."""

import secrets
import time


class SystemClock:
    """Time of day and random names."""

    def now(self) -> float:
        """Return Unix time in seconds."""
        return time.time()

    def new_id(self) -> str:
        """Return a name that nothing else has."""
        return secrets.token_hex(8)
