"""The contract of a rate limit."""

import pytest

from hark.timing.rate_limit import RateLimit, RateLimits


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_is_allowed_and_then_the_rate() -> None:
    clock = Clock()
    limit = RateLimit(3, 0.5, clock=clock)
    assert [limit.take() for _ in range(4)] == [True, True, True, False]
    done = 0
    for _ in range(60):
        clock.now += 1
        done += limit.take()
    assert done == 30


def test_an_action_is_allowed_after_exactly_the_wait_that_was_reported() -> None:
    clock = Clock()
    limit = RateLimit(1, 0.25, clock=clock)
    assert limit.take()
    wait = limit.wait_seconds()
    assert wait == pytest.approx(4.0)
    clock.now += wait - 0.01
    assert not limit.take()
    clock.now += 0.02
    assert limit.take()


def test_the_reserve_is_left_for_actions_that_cannot_wait() -> None:
    clock = Clock()
    limit = RateLimit(3, 1.0, reserve=2, clock=clock)
    assert limit.take()
    assert not limit.take()
    limit.count()
    limit.count()
    limit.count()  # counted even without a token
    assert limit.wait_seconds() == pytest.approx(4.0)


def test_tokens_never_exceed_the_burst() -> None:
    clock = Clock()
    limit = RateLimit(2, 1.0, clock=clock)
    clock.now += 3600
    assert [limit.take() for _ in range(3)] == [True, True, False]


def test_each_key_has_its_own_limit_and_old_keys_are_forgotten() -> None:
    clock = Clock()
    limits = RateLimits(lambda: RateLimit(1, 1 / 60, clock=clock), most_keys=2)
    assert limits.of("ann").take()
    assert limits.of("bob").take()
    assert not limits.of("ann").take()
    assert limits.of("carl").take()  # bob was used least recently
    assert not limits.of("ann").take()
    assert limits.of("bob").take()
