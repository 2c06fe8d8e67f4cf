"""Delays between retries."""

from hark.timing.backoff import Backoff


def test_each_delay_doubles_up_to_the_maximum() -> None:
    backoff = Backoff(1.0, 5.0)
    assert [backoff.next_delay() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_a_reset_starts_again_with_the_first_delay() -> None:
    backoff = Backoff(0.5, 60.0)
    first = [backoff.next_delay(), backoff.next_delay()]
    backoff.reset()
    assert [backoff.next_delay(), backoff.next_delay()] == first == [0.5, 1.0]


def test_jitter_adds_at_most_its_fraction_and_does_not_accumulate() -> None:
    for _ in range(100):
        backoff = Backoff(1.0, 8.0, jitter=0.2)
        delays = [backoff.next_delay() for _ in range(6)]
        for delay, base_delay in zip(delays, [1, 2, 4, 8, 8, 8], strict=True):
            assert base_delay <= delay <= base_delay * 1.2
    assert len({Backoff(1.0, 8.0, jitter=0.2).next_delay() for _ in range(20)}) > 1
