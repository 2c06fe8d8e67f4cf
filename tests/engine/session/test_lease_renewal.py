"""Whether a process may still believe in its leases."""

from hark.engine.session.lease_renewal import LeaseRenewal
from hark.store.memory import MemoryStore, SharedMemory
from tests.store.store_fixtures import TestClock


async def test_it_is_fresh_while_its_last_renewal_is_young() -> None:
    clock = TestClock()
    tenure = LeaseRenewal(MemoryStore(SharedMemory(), "me", clock).leases, clock)
    assert tenure.is_fresh
    clock.time += 7.9
    assert tenure.is_fresh
    await tenure.renew()
    clock.time += 7.9
    assert tenure.is_fresh
    assert tenure.lapses == 0


async def test_a_process_that_slept_is_not_fresh_and_its_next_renewal_counts_as_a_lapse() -> None:
    clock = TestClock()
    tenure = LeaseRenewal(MemoryStore(SharedMemory(), "me", clock).leases, clock)
    clock.time += 11
    assert not tenure.is_fresh
    await tenure.renew()
    assert tenure.is_fresh
    assert tenure.lapses == 1
