"""Long texts in pieces: they fit, nothing is lost, and code stays code."""

import random

import pytest

from hark.surfaces.chat.split_text import pieces

CODE = "Look:\n\n```python\n" + "\n".join(f"line_{number} = {number}" for number in range(40)) + "\n```\n\nThat is all."


def test_a_short_text_is_one_piece() -> None:
    assert pieces("hello", 100) == ["hello"]
    assert pieces("", 100) == [""]


def test_a_cut_falls_between_paragraphs_if_it_can() -> None:
    text = "a" * 60 + "\n\n" + "b" * 60
    assert pieces(text, 100) == ["a" * 60, "b" * 60]


def test_a_code_block_that_is_cut_is_closed_and_opened_anew() -> None:
    found = pieces(CODE, 200)
    assert len(found) >= 3
    for piece in found:
        assert piece.count("```") % 2 == 0
        assert len(piece) <= 200
    assert all(piece.startswith("```python\n") for piece in found[1:-1])


@pytest.mark.parametrize("seed", range(30))
def test_no_word_is_lost_and_every_piece_fits(seed: int) -> None:
    chance = random.Random(seed)
    words = [chance.choice(["a", "word", "\n", "\n\n", "x" * chance.randint(1, 80), "é漢字"]) for _ in range(300)]
    text = " ".join(words)
    limit = chance.randint(50, 400)
    found = pieces(text, limit)
    assert all(len(piece) <= limit for piece in found)
    assert "".join("".join(found).split()) == "".join(text.split())
