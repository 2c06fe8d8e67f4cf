"""Fuzzing of all targets for a short time. `make fuzz` runs longer."""

import time

import pytest

from tests.fuzz import fuzzing
from tests.fuzz.targets import TARGETS

SEEDS = 15


@pytest.mark.parametrize("name", TARGETS)
def test_random_text_neither_fails_nor_takes_long(name: str) -> None:
    for seed in range(SEEDS):
        fuzzing.run_target(name, seed)


def test_a_failure_names_the_command_that_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(data: bytes) -> None:
        raise KeyError(len(data))

    monkeypatch.setitem(TARGETS, "broken", fail)
    with pytest.raises(AssertionError, match=r"python -m tests\.fuzz --target 'broken' --seed 3"):
        fuzzing.run_target("broken", 3)


def test_a_slow_target_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def spin(_: bytes) -> None:
        ends_at = time.thread_time() + 0.02
        while time.thread_time() < ends_at:
            pass

    monkeypatch.setattr(fuzzing, "SECONDS_MAX", 0.01)
    monkeypatch.setitem(TARGETS, "slow", spin)
    with pytest.raises(AssertionError, match="slow took"):
        fuzzing.run_target("slow", 3)
