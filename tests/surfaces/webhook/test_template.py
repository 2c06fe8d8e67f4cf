"""Templates are filled with a payload's values, and missing values are reported."""

import pytest

from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.webhook.template import MAX_CHARACTERS, Template

PAYLOAD = {"a": {"b": "deep", "null": None}, "list": [{"x": 1}, {"x": True}], "text": "{a.b}", "n": 1.5, "o": {"k": 1}}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain", "plain"),
        ("{a.b}!", "deep!"),
        ("{ a.b }", "deep"),
        ("{list.0.x} {list.1.x}", "1 true"),
        ("{n} {o}", '1.5 {"k":1}'),
        ("{text}", "{a.b}"),  # a payload's text is not a template
        ("{{a.b}}", "{a.b}"),
        ("{a.c|none} {a.null|} {list.9.x|-}", "none  -"),
    ],
)
def test_a_template_is_filled_with_the_payload(template: str, text: str) -> None:
    assert Template(template).fill(PAYLOAD) == text


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{c}", "but the payload has a, list, n, o, text"),
        ("{a.c.d}", "but a has b, null"),
        ("{list.5}", "but list has 2 items"),
        ("{n.x}", "but n has no nested values"),
    ],
)
def test_a_missing_value_is_reported(template: str, message: str) -> None:
    with pytest.raises(ApiError, match=message):
        Template(template).fill(PAYLOAD)


def test_a_huge_value_is_truncated() -> None:
    assert len(Template("{x}").fill({"x": "y" * 1_000_000})) <= MAX_CHARACTERS + 2
