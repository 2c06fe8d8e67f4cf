"""Long texts are split into parts of the allowed length without losing text, and code blocks stay code blocks."""

import random

import pytest

from hark.surfaces.chat.split_text import split_text

CODE = "Look:\n\n```python\n" + "\n".join(f"line_{number} = {number}" for number in range(40)) + "\n```\n\nThat is all."


def test_a_short_text_is_not_split() -> None:
    assert split_text("hello", 100) == ["hello"]
    assert split_text("", 100) == [""]


def test_a_text_is_split_between_paragraphs_if_possible() -> None:
    text = "a" * 60 + "\n\n" + "b" * 60
    assert split_text(text, 100) == ["a" * 60, "b" * 60]


def test_a_split_code_block_is_closed_and_reopened() -> None:
    parts = split_text(CODE, 200)
    assert len(parts) >= 3
    for part in parts:
        assert part.count("```") % 2 == 0
        assert len(part) <= 200
    assert all(part.startswith("```python\n") for part in parts[1:-1])


@pytest.mark.parametrize("seed", range(30))
def test_no_text_is_lost_and_no_part_exceeds_the_limit(seed: int) -> None:
    chance = random.Random(seed)
    words = [chance.choice(["a", "word", "\n", "\n\n", "x" * chance.randint(1, 80), "é漢字"]) for _ in range(300)]
    text = " ".join(words)
    limit = chance.randint(50, 400)
    parts = split_text(text, limit)
    assert all(len(part) <= limit for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())
