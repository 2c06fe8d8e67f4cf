"""The linear-time check accepts linear functions and rejects quadratic ones."""

import re

import pytest

from tests import linear_time
from tests.linear_time import assert_linear


def test_the_check_accepts_a_linear_function() -> None:
    assert_linear(lambda size: "ab" * size, lambda text: [character.upper() for character in text], 10_000)


def test_the_check_rejects_a_quadratic_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_time, "REPETITIONS", 2)
    monkeypatch.setattr(linear_time, "ROUNDS_MAX", 2)

    def count_equal_pairs(numbers: range) -> int:
        return sum(first == second for first in numbers for second in numbers)

    with pytest.raises(AssertionError, match=r"not linear: size \d+ took .* times as long"):
        assert_linear(range, count_equal_pairs, 100)


def test_the_check_rejects_a_regular_expression_that_backtracks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_time, "REPETITIONS", 2)
    monkeypatch.setattr(linear_time, "ROUNDS_MAX", 2)
    with pytest.raises(AssertionError, match="not linear"):
        assert_linear(lambda size: " " * size, re.compile(r"\s+x").search, 500)


def test_the_check_increases_a_size_that_is_too_small_to_measure() -> None:
    sizes: list[int] = []

    def make_input(size: int) -> str:
        sizes.append(size)
        return "a" * size

    assert_linear(make_input, lambda text: list(text), 10)
    assert max(sizes) > 100


def test_the_check_accepts_a_function_that_limits_its_input() -> None:
    assert_linear(lambda size: "a" * size, lambda text: text[:10].upper(), 10)
