"""Whether this process may still believe that its sessions are its own."""

from hark.protocol.clock import Clock
from hark.protocol.store import Leases

FRESH_SHARE = 0.8


class LeaseRenewal:
    """Renews the leases of a process, and knows how old the last renewal is.

    A process that was stopped, or slept, finds its leases old when it wakes: another may own its sessions by then.
    `lapses` counts how often they ran out.
    """

    def __init__(self, leases: Leases, clock: Clock) -> None:
        self._leases = leases
        self._clock = clock
        self._renewed_at = clock.now()
        self.lapses = 0

    @property
    def is_fresh(self) -> bool:
        """True while no other process can have taken a session over."""
        return self._clock.now() - self._renewed_at < self._leases.seconds * FRESH_SHARE

    async def renew(self) -> None:
        """Say that this process lives.

        Raises:
            StoreError: It could not be said.
        """
        began = self._clock.now()
        await self._leases.renew()
        if self._clock.now() - self._renewed_at >= self._leases.seconds:
            self.lapses += 1  # it came too late: whoever owned a session must prove it
        self._renewed_at = began
