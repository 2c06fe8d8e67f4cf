"""Forms of servers: each kind of field, and each way to end."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hark.mcp.forms import CANCELLED, DECLINED, Filled, Form, fill, read_form
from tests.mcp.mcp_fixture import Person


def form(required: list[str], **properties: Any) -> Form:
    return read_form("srv", "Tell me", {"type": "object", "properties": properties, "required": required})


@pytest.mark.parametrize(
    "odd", [True, 3, {"enum": 3}, {"type": "array", "items": 5}, {"type": "integer", "minimum": "x"}]
)
def test_a_form_that_is_none_is_refused(odd: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        form([], a=odd)


async def test_titles_stand_for_values(tmp_path: Path) -> None:
    titled = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]}
    person = Person(tmp_path, "blue")
    assert await fill(form(["a"], a=titled), person) == Filled("accept", {"a": "b"})
    assert person.questions[0].choices == ("Red", "Blue", "(decline)")


async def test_several_may_be_chosen(tmp_path: Path) -> None:
    several = {"type": "array", "items": {"type": "string", "enum": ["x", "y", "z"]}}
    assert await fill(form(["a"], a=several), Person(tmp_path, "x, z")) == Filled("accept", {"a": ["x", "z"]})


async def test_numbers_are_numbers_within_their_bounds(tmp_path: Path) -> None:
    number = {"type": "number", "minimum": 0, "maximum": 1}
    person = Person(tmp_path, "5", "0.5")
    assert await fill(form(["a"], a=number), person) == Filled("accept", {"a": 0.5})
    assert "it must be at most 1" in person.questions[1].text


async def test_what_is_optional_may_be_left_out_and_a_default_is_taken(tmp_path: Path) -> None:
    fields = form(["b"], a={"type": "string"}, b={"type": "integer", "default": 7})
    assert await fill(fields, Person(tmp_path, "(leave out)", "(leave out)")) == Filled("accept", {"b": 7})


async def test_declining_any_field_declines_the_form(tmp_path: Path) -> None:
    fields = form(["a", "b"], a={"type": "string"}, b={"type": "boolean"})
    assert await fill(fields, Person(tmp_path, "text", "(decline)")) == DECLINED


async def test_answers_that_never_fit_cancel_the_form(tmp_path: Path) -> None:
    assert await fill(form(["a"], a={"type": "integer"}), Person(tmp_path, "x", "y", "z")) == CANCELLED


async def test_a_form_without_fields_and_a_page_are_confirmed(tmp_path: Path) -> None:
    assert await fill(form([]), Person(tmp_path, "(accept)")) == Filled("accept", {})
    person = Person(tmp_path, "yes")
    assert await fill(Form("srv", "Pay", url="https://pay.example"), person) == Filled("accept")
    assert "https://pay.example" in person.questions[0].text
    assert await fill(form([]), Person(tmp_path, "no")) == DECLINED
