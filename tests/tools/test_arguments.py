"""Checking a call's arguments."""

import pytest

from hark.protocol.tool import ToolSpec
from hark.tools.arguments import check

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
