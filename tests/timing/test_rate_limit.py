"""Rate limits for one key and for several keys."""

import pytest

from hark.timing.rate_limit import RateLimit, RateLimits


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_is_allowed_and_then_the_rate_applies() -> None:
    clock = FakeClock()
    limit = RateLimit(3, 0.5, clock=clock)
    assert [limit.try_consume_token() for _ in range(4)] == [True, True, True, False]
    allowed_count = 0
    for _ in range(60):
        clock.now += 1
        allowed_count += limit.try_consume_token()
    assert allowed_count == 30


def test_an_action_is_allowed_after_exactly_the_reported_wait() -> None:
    clock = FakeClock()
    limit = RateLimit(1, 0.25, clock=clock)
    assert limit.try_consume_token()
    wait = limit.wait_seconds()
    assert wait == pytest.approx(4.0)
    clock.now += wait - 0.01
    assert not limit.try_consume_token()
    clock.now += 0.02
    assert limit.try_consume_token()


def test_the_reserve_is_available_only_to_urgent_actions() -> None:
    clock = FakeClock()
    limit = RateLimit(3, 1.0, reserve=2, clock=clock)
    assert limit.try_consume_token()
    assert not limit.try_consume_token()
    limit.consume_token()
    limit.consume_token()
    limit.consume_token()  # consumed even though no token is available
    assert limit.wait_seconds() == pytest.approx(4.0)


def test_tokens_never_exceed_the_burst() -> None:
    clock = FakeClock()
    limit = RateLimit(2, 1.0, clock=clock)
    clock.now += 3600
    assert [limit.try_consume_token() for _ in range(3)] == [True, True, False]


def test_each_key_has_its_own_limit_and_old_keys_are_dropped() -> None:
    clock = FakeClock()
    limits = RateLimits(lambda: RateLimit(1, 1 / 60, clock=clock), max_keys=2)
    assert limits.get_limit("ann").try_consume_token()
    assert limits.get_limit("bob").try_consume_token()
    assert not limits.get_limit("ann").try_consume_token()
    assert limits.get_limit("carl").try_consume_token()  # bob was used least recently
    assert not limits.get_limit("ann").try_consume_token()
    assert limits.get_limit("bob").try_consume_token()
