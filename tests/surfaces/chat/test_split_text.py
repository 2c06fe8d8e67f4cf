"""Long texts are split into parts of the allowed length without losing text, and code blocks stay code blocks."""

import random
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hark.surfaces.chat.markdown import get_parser
from hark.surfaces.chat.split_text import cut_position, split_text, text_length
from tests.linear_time import assert_linear

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
FLAG = "\U0001f1e9\U0001f1ea"
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


def test_parts_are_counted_in_utf16_code_units() -> None:
    parts = split_text("line 😀😀😀😀\n" * 500, 1000)
    assert all(len(part.encode("utf-16-le")) <= 2000 for part in parts)
    assert "".join(parts).count("😀") == 2000
    assert len(parts) <= 9


def test_a_line_with_backticks_after_its_fence_is_not_a_code_block() -> None:
    text = "```python print(1)```\n" * 100
    parts = split_text(text, 300)
    assert "\n".join(parts) == text.strip()


@pytest.mark.parametrize("fence", ["```" + "y" * 4000, "`" * 4000, "~" * 400, "```a b c"])
def test_a_hostile_fence_loses_and_repeats_no_line(fence: str) -> None:
    lines = [f"line {number};" for number in range(300)]
    parts = split_text("\n".join([fence, *lines, "```"]), 1000)
    assert all(text_length(part) <= 1000 for part in parts)
    shown = [line for part in parts for line in part.split("\n") if line.startswith("line ")]
    assert shown == lines
    assert len(parts) <= 14


@pytest.mark.parametrize("fence", ["```", "~~~~~", "  ```", "```````````````"])
def test_each_part_of_a_split_code_block_is_complete_markdown(fence: str) -> None:
    text = f"{fence}c++ title=1\n" + "".join(f"int a{number};\n" for number in range(200)) + f"{fence}\n\nThe end."
    parts = split_text(text, 400)
    code = ""
    for part in parts:
        tokens = get_parser().parse(part)
        assert [token.type for token in tokens][:1] == ["fence"]
        assert tokens[0].info.startswith("c++")
        code += tokens[0].content
    assert code.count("int a") == 200
    assert "The end." not in code
    assert parts[-1].endswith("The end.")


@pytest.mark.parametrize("cluster", [FAMILY, FLAG, "e\u0301\u0323", "👍🏽", "1\ufe0f\u20e3"])
def test_no_part_begins_or_ends_inside_a_grapheme_cluster(cluster: str) -> None:
    parts = split_text("a" + cluster * 1000, 333)
    assert "".join(parts) == "a" + cluster * 1000
    assert all(part.removeprefix("a").replace(cluster, "") == "" for part in parts)


def test_a_cluster_that_is_longer_than_a_part_is_split() -> None:
    text = "a" + "\u0301" * 5000
    assert "".join(split_text(text, 200)) == text


def test_blank_parts_are_left_out() -> None:
    assert split_text("a" + " " * 5000 + "b", 200) == ["a", "b"]
    assert split_text(" " * 5000, 200) == [""]


def test_a_cut_keeps_as_much_as_fits() -> None:
    assert cut_position("a😀b", 2) == 1
    assert cut_position("a😀b", 3) == 2
    assert cut_position("abc", 10) == 3


def test_the_start_of_a_long_word_after_a_fence_is_not_repeated_as_a_language() -> None:
    text = "```" + "x" * 160
    parts = split_text(text, 100)
    assert "".join(parts).count("x") == 160
    assert all(len(part) <= 100 for part in parts)


FRAGMENTS = st.sampled_from(
    [
        "word, ",  # no fragment is a language, which would be repeated when its fence is reopened
        "\n",
        "\n\n",
        "```",
        "```py\n",
        "\n```\n",
        "~~~~\n",
        "    ",
        "`a`",
        "😀",
        FAMILY,
        FLAG,
        "é!",
        "漢字!",
        ". ",
        "\r\n",
        "x" * 150,
    ]
)


@settings(derandomize=True, deadline=None, database=None, max_examples=300)
@given(st.lists(FRAGMENTS, max_size=120), st.integers(100, 500))
def test_every_text_is_split_without_loss(pieces: list[str], limit: int) -> None:
    text = "".join(pieces)
    parts = split_text(text, limit)
    assert all(text_length(part) <= limit for part in parts) or not text.strip()

    def letters(value: str) -> list[str]:
        return [one for one in value if unicodedata.category(one)[0] in "LMNSC" and one not in "`~\r\n"]

    assert letters("".join(parts).replace("py", "")) == letters(text.replace("py", ""))


@pytest.mark.parametrize("piece", ["word. ", "😀", "a", "```\n", " ", "\n", "``` `", "\u0301", FAMILY])
def test_splitting_time_grows_linearly(piece: str) -> None:
    assert_linear(lambda size: "a" + piece * size + "a", lambda text: split_text(text, 1900), 10_000)
