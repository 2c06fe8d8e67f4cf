"""Templates: what a payload has is put in, and what it lacks is told."""

import pytest

from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.webhook.template import MOST_CHARACTERS, Template

PAYLOAD = {"a": {"b": "deep", "null": None}, "list": [{"x": 1}, {"x": True}], "text": "{a.b}", "n": 1.5, "o": {"k": 1}}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain", "plain"),
        ("{a.b}!", "deep!"),
        ("{ a.b }", "deep"),
        ("{list.0.x} {list.1.x}", "1 true"),
        ("{n} {o}", '1.5 {"k":1}'),
        ("{text}", "{a.b}"),  # what a payload says is no template
        ("{{a.b}}", "{a.b}"),
        ("{a.c|none} {a.null|} {list.9.x|-}", "none  -"),
    ],
)
def test_it_is_filled(template: str, text: str) -> None:
    assert Template(template).fill(PAYLOAD) == text


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{c}", "but the payload has a, list, n, o, text"),
        ("{a.c.d}", "but a has b, null"),
        ("{list.5}", "but list has 2 items"),
        ("{n.x}", "but n has no more below it"),
    ],
)
def test_what_is_not_there_is_told(template: str, words: str) -> None:
    with pytest.raises(ApiError, match=words):
        Template(template).fill(PAYLOAD)


def test_a_huge_value_is_cut() -> None:
    assert len(Template("{x}").fill({"x": "y" * 1_000_000})) <= MOST_CHARACTERS + 2
