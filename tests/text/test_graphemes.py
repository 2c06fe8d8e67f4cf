"""No cut splits a character as a reader sees it."""

import pytest

from hark.text.cleanup import truncate_middle
from hark.text.columns import truncate
from hark.text.graphemes import MAX_CLUSTER_CHARACTERS, safe_cut, shorten
from hark.text.safe_text import sanitize_line
from tests.linear_time import assert_linear

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
CLUSTERS = [
    FAMILY,
    "❤\ufe0f\u200d🔥",
    "👍🏽",
    "🇩🇪",
    "1\ufe0f\u20e3",
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "e\u0301\u0323",
    "क्",
    "\u1112\u1161\u11ab",
    "\r\n",
]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_text_is_cut_only_between_clusters(cluster: str) -> None:
    text = f"ab{cluster * 3}c"
    size = len(cluster)
    allowed = [0, 1, 2, 2 + size, 2 + 2 * size, 2 + 3 * size, len(text)]
    for limit in range(len(text) + 3):
        assert safe_cut(text, limit) == max(position for position in allowed if position <= limit)


def test_flags_are_cut_in_pairs() -> None:
    assert [safe_cut("🇩🇪🇫🇷🇮🇹", limit) for limit in range(2, 7)] == [2, 2, 4, 4, 6]


def test_a_cut_makes_progress_inside_one_endless_cluster() -> None:
    text = "a" + "\u0301" * 1000
    assert safe_cut(text, 3) == 3
    assert safe_cut(text, 500) == 500
    assert safe_cut(text, MAX_CLUSTER_CHARACTERS) == MAX_CLUSTER_CHARACTERS


def test_a_negative_limit_cuts_everything() -> None:
    assert safe_cut("abc", -1) == 0


def test_shortened_text_ends_with_an_ellipsis_after_a_whole_cluster() -> None:
    assert shorten(f"ab{FAMILY}", 9) == f"ab{FAMILY}"
    assert shorten(f"ab{FAMILY}c", 9) == "ab…"
    assert sanitize_line(f"ab{FAMILY}c", 9) == "ab…"
    assert truncate("ab🇩🇪🇫🇷", 4) == "ab…"


def test_the_omitted_middle_starts_and_ends_between_clusters() -> None:
    text = f"{FAMILY * 2}{'x' * 100}{FAMILY * 2}"
    shortened = truncate_middle(text, 20)
    assert shortened == f"{FAMILY}\n[... {len(text) - 3 * len(FAMILY)} characters omitted ...]\n{FAMILY * 2}"


@pytest.mark.parametrize("hostile", ["\u0301", "🇩", "\u200d", "👨\u200d"])
def test_cutting_hostile_text_into_pieces_takes_linear_time(hostile: str) -> None:
    def cut_into_pieces(text: str) -> None:
        position = 0
        while position < len(text):
            position += safe_cut(text[position : position + 200], 100)

    assert_linear(lambda size: hostile * size, cut_into_pieces, 20_000)
