"""The system clock, and random ids."""

import secrets
import time


class SystemClock:
    """The system time, and random ids."""

    def now(self) -> float:
        """Return Unix time in seconds."""
        return time.time()

    def new_id(self) -> str:
        """Return a new unique id."""
        return secrets.token_hex(8)
