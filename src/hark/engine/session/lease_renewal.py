"""Tracks whether this process can still rely on owning its sessions."""

from hark.protocol.clock import Clock
from hark.protocol.store import Leases

FRESH_SHARE = 0.8


class LeaseRenewal:
    """Renews the leases of a process, and tracks the age of the last renewal.

    A process that was suspended finds its leases expired when it resumes; another process may own its sessions then.
    `lapses` counts how often the leases expired.
    """

    def __init__(self, leases: Leases, clock: Clock) -> None:
        self._leases = leases
        self._clock = clock
        self._renewed_at = clock.now()
        self.lapses = 0

    @property
    def is_fresh(self) -> bool:
        """True while no other process can have acquired this process's sessions."""
        return self._clock.now() - self._renewed_at < self._leases.seconds * FRESH_SHARE

    async def renew(self) -> None:
        """Renew the leases of this process.

        Raises:
            StoreError: The leases could not be renewed.
        """
        began = self._clock.now()
        await self._leases.renew()
        if self._clock.now() - self._renewed_at >= self._leases.seconds:
            self.lapses += 1  # the renewal was too late, so each session must verify that it is still owned
        self._renewed_at = began
