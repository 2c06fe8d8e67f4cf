"""Whether a process may still believe in its leases."""

from hark.engine.tenure import Tenure
from hark.store.memory import Memory, MemoryStore
from tests.store.worlds import TestClock


async def test_it_is_fresh_while_its_last_renewal_is_young() -> None:
    clock = TestClock()
    tenure = Tenure(MemoryStore(Memory(), "me", clock).leases, clock)
    assert tenure.is_fresh
    clock.time += 7.9
    assert tenure.is_fresh
    await tenure.renew()
    clock.time += 7.9
    assert tenure.is_fresh
    assert tenure.lapses == 0


async def test_a_process_that_slept_is_not_fresh_and_its_next_renewal_counts_as_a_lapse() -> None:
    clock = TestClock()
    tenure = Tenure(MemoryStore(Memory(), "me", clock).leases, clock)
    clock.time += 11
    assert not tenure.is_fresh
    await tenure.renew()
    assert tenure.is_fresh
    assert tenure.lapses == 1
