"""Lease renewal: leases are fresh after a recent renewal, and stale in a process that was suspended."""

from hark.engine.session.lease_renewal import LeaseRenewal
from hark.store.memory import MemoryStore, SharedMemory
from tests.store.store_fixtures import TestClock


async def test_leases_are_fresh_while_the_last_renewal_is_recent() -> None:
    clock = TestClock()
    renewal = LeaseRenewal(MemoryStore(SharedMemory(), "me", clock).leases, clock)
    assert renewal.is_fresh
    clock.time += 7.9
    assert renewal.is_fresh
    await renewal.renew()
    clock.time += 7.9
    assert renewal.is_fresh
    assert renewal.lapses == 0


async def test_leases_of_a_suspended_process_are_stale_until_renewed_and_the_lapse_is_counted() -> None:
    clock = TestClock()
    renewal = LeaseRenewal(MemoryStore(SharedMemory(), "me", clock).leases, clock)
    clock.time += 11
    assert not renewal.is_fresh
    await renewal.renew()
    assert renewal.is_fresh
    assert renewal.lapses == 1
