"""Forms from MCP servers: each kind of field, and each possible outcome."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hark.mcp.forms import CANCELLED, DECLINED, Form, FormResult, fill_form, read_form
from tests.mcp.mcp_fixture import AnsweringUser


def make_form(required: list[str], **properties: Any) -> Form:
    return read_form("srv", "Please fill in", {"type": "object", "properties": properties, "required": required})


@pytest.mark.parametrize(
    "odd", [True, 3, {"enum": 3}, {"type": "array", "items": 5}, {"type": "integer", "minimum": "x"}]
)
def test_an_invalid_schema_is_rejected(odd: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        make_form([], a=odd)


async def test_choosing_a_title_sends_the_corresponding_value(tmp_path: Path) -> None:
    titled = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]}
    user = AnsweringUser(tmp_path, "blue")
    assert await fill_form(make_form(["a"], a=titled), user) == FormResult("accept", {"a": "b"})
    assert user.questions[0].choices == ("Red", "Blue", "(decline)")


async def test_several_values_can_be_chosen_for_an_array_field(tmp_path: Path) -> None:
    array = {"type": "array", "items": {"type": "string", "enum": ["x", "y", "z"]}}
    assert await fill_form(make_form(["a"], a=array), AnsweringUser(tmp_path, "x, z")) == FormResult(
        "accept", {"a": ["x", "z"]}
    )


async def test_the_user_is_asked_again_after_a_number_outside_the_bounds(tmp_path: Path) -> None:
    number = {"type": "number", "minimum": 0, "maximum": 1}
    user = AnsweringUser(tmp_path, "5", "0.5")
    assert await fill_form(make_form(["a"], a=number), user) == FormResult("accept", {"a": 0.5})
    assert "the value must be at most 1" in user.questions[1].text


async def test_an_optional_field_can_be_skipped_and_a_default_is_used(tmp_path: Path) -> None:
    fields = make_form(["b"], a={"type": "string"}, b={"type": "integer", "default": 7})
    assert await fill_form(fields, AnsweringUser(tmp_path, "(skip)", "(skip)")) == FormResult("accept", {"b": 7})


async def test_declining_any_field_declines_the_form(tmp_path: Path) -> None:
    fields = make_form(["a", "b"], a={"type": "string"}, b={"type": "boolean"})
    assert await fill_form(fields, AnsweringUser(tmp_path, "text", "(decline)")) == DECLINED


async def test_a_form_is_cancelled_after_too_many_invalid_answers(tmp_path: Path) -> None:
    assert await fill_form(make_form(["a"], a={"type": "integer"}), AnsweringUser(tmp_path, "x", "y", "z")) == CANCELLED


async def test_a_form_without_fields_or_with_a_url_needs_the_users_confirmation(tmp_path: Path) -> None:
    assert await fill_form(make_form([]), AnsweringUser(tmp_path, "(accept)")) == FormResult("accept", {})
    user = AnsweringUser(tmp_path, "yes")
    assert await fill_form(Form("srv", "Pay", url="https://pay.example"), user) == FormResult("accept")
    assert "https://pay.example" in user.questions[0].text
    assert await fill_form(make_form([]), AnsweringUser(tmp_path, "no")) == DECLINED
