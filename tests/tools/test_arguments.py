"""Checking a call's arguments."""

from typing import Annotated, Literal

import pytest

from hark.protocol.tool import ToolError, ToolSpec
from hark.tools.arguments import ToolArguments, check, decode, doc, tool_spec

SPEC = ToolSpec(
    name="paint",
    description="",
    parameters={
        "type": "object",
        "properties": {
            "colour": {"type": "string"},
            "coats": {"type": "integer"},
            "litres": {"type": "number"},
            "is_wet": {"type": "boolean"},
            "parts": {"type": "array"},
            "finish": {"enum": ["matt", "gloss"]},
            "either": {"type": ["string", "null"]},
            "any": {},
        },
        "required": ["colour", "coats"],
    },
)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"litres": 2},
        {"litres": 2.5},
        {"is_wet": False},
        {"parts": []},
        {"finish": "matt"},
        {"either": None},
        {"any": {"x": 1}},
        {"litres": None},
    ],
)
def test_arguments_that_fit_are_passed(more: dict[str, object]) -> None:
    assert check(SPEC, {"colour": "red", "coats": 2, **more}) is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "paint needs colour, coats: call it again with them."),
        ({"colour": "red"}, "paint needs coats: call it again with it."),
        ({"colour": 1, "coats": 2}, "colour: expected text, got a whole number."),
        ({"colour": None, "coats": 2}, "colour: expected text, got null."),
        ({"colour": "red", "coats": True}, "coats: expected a whole number, got true or false."),
        ({"colour": "red", "coats": 1.5}, "coats: expected a whole number, got a number."),
        ({"colour": "red", "coats": 2, "litres": "2"}, "litres: expected a number, got text."),
        ({"colour": "red", "coats": 2, "is_wet": 0}, "is_wet: expected true or false, got a whole number."),
        ({"colour": "red", "coats": 2, "parts": {}}, "parts: expected array, got object."),
        ({"colour": "red", "coats": 2, "finish": "silk"}, "finish: expected one of matt, gloss, got silk."),
        ({"colour": "red", "coats": 2, "either": 5}, "either: expected text or null, got a whole number."),
        (
            {"colour": "red", "coats": 2, "size": 5},
            "paint has no argument size: it takes colour, coats, litres, is_wet, parts, finish, either, any.",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(arguments: dict[str, object], sentence: str) -> None:
    assert check(SPEC, arguments) == sentence


class Colour(ToolArguments, frozen=True):
    """Not for the model."""

    name: str
    depth: int = 1


class PaintArguments(ToolArguments, frozen=True):
    """Paint a wall.

    It takes a while.
    """

    wall: Annotated[str, doc("Which one.")]
    finish: Annotated[Literal["matt", "gloss"], doc("How it looks.")] = "matt"
    coats: Annotated[int, doc("How many.", ge=1)] = 2
    seconds: Annotated[float, doc("How long.", gt=0)] = 60.0
    is_wet: bool | None = None
    colours: Annotated[tuple[Colour, ...], doc("Several.")] = ()


PAINT = tool_spec(PaintArguments, "paint", is_changing=True)


def test_the_schema_of_a_struct_has_no_references_titles_defaults_or_null() -> None:
    colour = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "depth": {"type": "integer"}},
        "required": ["name"],
        "additionalProperties": False,
    }
    assert (PAINT.name, PAINT.description) == ("paint", "Paint a wall. It takes a while.")
    assert PAINT.parameters == {
        "type": "object",
        "properties": {
            "wall": {"type": "string", "description": "Which one."},
            "finish": {"type": "string", "enum": ["matt", "gloss"], "description": "How it looks."},
            "coats": {"type": "integer", "minimum": 1, "description": "How many."},
            "seconds": {"type": "number", "exclusiveMinimum": 0, "description": "How long."},
            "is_wet": {"type": "boolean"},
            "colours": {"type": "array", "items": colour, "description": "Several."},
        },
        "required": ["wall"],
        "additionalProperties": False,
    }


def test_arguments_are_decoded_into_the_struct() -> None:
    given: dict[str, object] = {
        "wall": "north",
        "finish": "gloss",
        "coats": 3,
        "seconds": 5,
        "colours": [{"name": "red"}],
    }
    assert decode(PAINT, given) == PaintArguments("north", "gloss", 3, 5.0, None, (Colour("red"),))


def test_an_optional_argument_that_is_null_or_zero_where_numbers_start_at_one_gets_its_default() -> None:
    given: dict[str, object] = {
        "wall": "north",
        "finish": None,
        "coats": 0,
        "seconds": None,
        "is_wet": None,
        "colours": None,
    }
    assert decode(PAINT, given) == PaintArguments("north")


WRONG: list[tuple[dict[str, object], str]] = [
    ({}, "paint needs wall: call it again with it."),
    ({"wall": None}, "wall: expected text, got null."),
    ({"wall": 5}, "wall: expected text, got a whole number."),
    ({"wall": "n", "coats": True}, "coats: expected a whole number, got true or false."),
    ({"wall": "n", "coats": 1.5}, "coats: expected a whole number, got a number."),
    ({"wall": "n", "coats": -1}, "coats: expected a whole number from 1 on, got -1. Or leave it out."),
    ({"wall": "n", "seconds": 0}, "seconds: expected a number above 0, got 0. Or leave it out."),
    ({"wall": "n", "finish": "silk"}, "finish: expected one of matt, gloss, got silk."),
    ({"wall": "n", "colours": "red"}, "colours: expected array, got text."),
    ({"wall": "n", "colours": [{"name": 1}]}, "colours[0].name: expected str, got int."),
    ({"wall": "n", "colours": [{}]}, "colours[0]: object missing required field name."),
    (
        {"wall": "n", "colour": "red"},
        "paint has no argument colour: it takes wall, finish, coats, seconds, is_wet, colours.",
    ),
]


@pytest.mark.parametrize(("arguments", "sentence"), WRONG)
def test_arguments_that_do_not_fit_the_struct_are_explained(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(ToolError) as raised:
        decode(PAINT, arguments)
    assert str(raised.value) == sentence


def test_a_tool_without_a_struct_gets_the_object_as_it_is() -> None:
    given: dict[str, object] = {"colour": "red", "coats": 2}
    assert decode(SPEC, given) == given
    with pytest.raises(ToolError, match="paint needs coats"):
        decode(SPEC, {"colour": "red"})
