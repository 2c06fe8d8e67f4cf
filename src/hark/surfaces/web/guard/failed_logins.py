"""Wrong tokens, counted by who sends them: whoever tries them out has to wait."""

import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

MOST_WRONG = 100
WINDOW_SECONDS = 60.0
MOST_SENDERS = 10_000
_NETWORK_BITS = 64  # who has one address of IPv6 has all of its network


class Guesses:
    """How often each sender was wrong in the current window.

    Programs on this machine are not counted: a proxy among them stands for everybody, and one stranger would shut all
    others out. It has to bound its own clients.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._wrong: dict[str, int] = {}

    def wrong(self, address: str) -> None:
        """Count a wrong token."""
        sender = _sender(address)
        if sender and (sender in self._wrong or len(self._wrong) < MOST_SENDERS):
            self._wrong[sender] = self._wrong.get(sender, 0) + 1

    def wait_seconds(self, address: str) -> int:
        """Return how long a sender has to wait before another try; 0 for not at all."""
        left = self._began + WINDOW_SECONDS - self._clock()
        if left <= 0:
            self._began, left = self._clock(), WINDOW_SECONDS
            self._wrong.clear()
        return max(1, round(left)) if self._wrong.get(_sender(address), 0) >= MOST_WRONG else 0


def _sender(address: str) -> str:
    """Return who sends from an address; "" for this machine."""
    try:
        known = ip_address(address)
    except ValueError:
        return address
    if known.is_loopback:
        return ""
    if isinstance(known, IPv6Address):
        return _sender(str(known.ipv4_mapped)) if known.ipv4_mapped else str(int(known) >> (128 - _NETWORK_BITS))
    return address
