"""Checking and decoding the arguments of a tool call."""

from typing import Annotated, Literal

import pytest

from hark.protocol.tool import ToolError, ToolSpec
from hark.tools.arguments import ToolArguments, decode_arguments, doc, find_argument_problem, tool_spec

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
    "optional",
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
def test_valid_arguments_are_accepted(optional: dict[str, object]) -> None:
    assert find_argument_problem(SPEC, {"colour": "red", "coats": 2, **optional}) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "paint needs colour, coats. Call it again with every required argument."),
        ({"colour": "red"}, "paint needs coats. Call it again with every required argument."),
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
            "paint has no argument size. Its arguments: colour, coats, litres, is_wet, parts, finish, either, any.",
        ),
    ],
)
def test_check_returns_a_message_for_invalid_arguments(arguments: dict[str, object], message: str) -> None:
    assert find_argument_problem(SPEC, arguments) == message


class Colour(ToolArguments, frozen=True):
    """A nested type whose docstring must not appear in the schema."""

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


def test_schema_has_no_references_titles_defaults_or_null() -> None:
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
    assert decode_arguments(PAINT, given) == PaintArguments("north", "gloss", 3, 5.0, None, (Colour("red"),))


def test_optional_arguments_that_are_null_or_an_invalid_zero_get_their_default() -> None:
    given: dict[str, object] = {
        "wall": "north",
        "finish": None,
        "coats": 0,
        "seconds": None,
        "is_wet": None,
        "colours": None,
    }
    assert decode_arguments(PAINT, given) == PaintArguments("north")


INVALID_ARGUMENTS: list[tuple[dict[str, object], str]] = [
    ({}, "paint needs wall. Call it again with every required argument."),
    ({"wall": None}, "wall: expected text, got null."),
    ({"wall": 5}, "wall: expected text, got a whole number."),
    ({"wall": "n", "coats": True}, "coats: expected a whole number, got true or false."),
    ({"wall": "n", "coats": 1.5}, "coats: expected a whole number, got a number."),
    ({"wall": "n", "coats": -1}, "coats: expected a whole number of at least 1, got -1. Or omit it."),
    ({"wall": "n", "seconds": 0}, "seconds: expected a number above 0, got 0. Or omit it."),
    ({"wall": "n", "finish": "silk"}, "finish: expected one of matt, gloss, got silk."),
    ({"wall": "n", "colours": "red"}, "colours: expected array, got text."),
    ({"wall": "n", "colours": [{"name": 1}]}, "colours[0].name: expected str, got int."),
    ({"wall": "n", "colours": [{}]}, "colours[0]: object missing required field name."),
    (
        {"wall": "n", "colour": "red"},
        "paint has no argument colour. Its arguments: wall, finish, coats, seconds, is_wet, colours.",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), INVALID_ARGUMENTS)
def test_arguments_that_do_not_match_the_struct_cause_an_error(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ToolError) as raised:
        decode_arguments(PAINT, arguments)
    assert str(raised.value) == message


def test_a_tool_without_a_struct_gets_the_json_object_unchanged() -> None:
    given: dict[str, object] = {"colour": "red", "coats": 2}
    assert decode_arguments(SPEC, given) == given
    with pytest.raises(ToolError, match="paint needs coats"):
        decode_arguments(SPEC, {"colour": "red"})
