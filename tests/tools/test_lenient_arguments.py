"""Arguments under other names or in other types are accepted if their meaning is certain."""

import importlib
import pkgutil
from typing import Annotated, Any

import pytest

import hark.tools
from hark.protocol.tool import ToolError, ToolSpec
from hark.tools.arguments import (
    ToolArguments,
    build_schema,
    decode_arguments,
    doc,
    find_argument_problem,
    tool_spec,
)
from hark.tools.files.edit import EditArguments, Replacement
from hark.tools.files.read import ReadArguments
from hark.tools.lenient_arguments import ALIASES, normalize_object
from hark.tools.shell import ShellArguments
from tests.linear_time import assert_linear

SHELL, EDIT, READ = (
    tool_spec(ShellArguments, "shell"),
    tool_spec(EditArguments, "edit"),
    tool_spec(ReadArguments, "read"),
)


class Options(ToolArguments, frozen=True):
    """A nested object."""

    depth: int = 1
    names: tuple[str, ...] = ()


class PaintArguments(ToolArguments, frozen=True):
    """Paint a wall."""

    wall: str
    coats: Annotated[int, doc("How many.", ge=1)] = 2
    litres: float = 1.0
    is_wet: bool = False
    tags: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    options: Options | None = None
    max_drops: int | None = None


PAINT = tool_spec(PaintArguments, "paint")
MCP_PAINT = ToolSpec("mcp_paint", "", PAINT.parameters)

CONVERTED: list[tuple[str, object, object]] = [
    ("coats", "5", 5),
    ("coats", 5.0, 5),
    ("coats", "5.0", 5),
    ("litres", "2.5", 2.5),
    ("litres", "2", 2.0),
    ("is_wet", "true", True),
    ("is_wet", "False", False),
    ("tags", "red", ("red",)),
    ("tags", '["red", "blue"]', ("red", "blue")),
    ("sizes", "[1, 2]", (1, 2)),
    ("sizes", ["1", 2.0], (1, 2)),
    ("options", '{"depth": "3"}', Options(3)),
    ("options", {"depth": "3", "names": "x"}, Options(3, ("x",))),
    ("max_drops", "7", 7),
    ("maxDrops", 7, 7),
    ("max-drops", 7, 7),
    ("options", None, None),
]


@pytest.mark.parametrize(("name", "value", "expected"), CONVERTED)
def test_a_value_of_another_type_is_converted_to_the_type_of_the_schema(
    name: str, value: object, expected: object
) -> None:
    decoded = decode_arguments(PAINT, {"wall": "north", name: value})
    field = {"maxDrops": "max_drops", "max-drops": "max_drops"}.get(name, name)
    assert getattr(decoded, field) == expected
    assert type(getattr(decoded, field)) is type(expected)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("wall", 5, "wall: expected text, got a whole number."),
        ("coats", "five", "coats: expected a whole number, got text."),
        ("coats", "5.5", "coats: expected a whole number, got text."),
        ("coats", "true", "coats: expected a whole number, got text."),
        ("coats", "-1", "coats: expected a whole number of at least 1, got -1. Or omit it."),
        ("coats", True, "coats: expected a whole number, got true or false."),
        ("is_wet", "yes", "is_wet: expected true or false, got text."),
        ("is_wet", 1, "is_wet: expected true or false, got a whole number."),
        ("sizes", "one", "sizes: expected array, got text."),
        ("tags", [1], "tags[0]: expected str, got int."),
        ("options", "[1]", "options: expected object, got text."),
        ("options", '{"depth": "x"}', "options.depth: expected int, got str."),
    ],
)
def test_a_converted_value_that_does_not_fit_the_schema_is_rejected(name: str, value: object, message: str) -> None:
    with pytest.raises(ToolError) as raised:
        decode_arguments(PAINT, {"wall": "north", name: value})
    assert str(raised.value) == message


def test_text_stays_text_even_if_it_looks_like_another_type() -> None:
    for text in ("5", "true", "null", "[1]", '{"a": 1}'):
        assert decode_arguments(PAINT, {"wall": text, "coats": "3"}) == PaintArguments(text, 3)


def test_arguments_of_a_tool_with_only_a_schema_are_converted_too() -> None:
    given: dict[str, Any] = {"wall": "north", "coats": "5", "isWet": "true", "tags": "red"}
    assert decode_arguments(MCP_PAINT, given) == {"wall": "north", "coats": 5, "is_wet": True, "tags": ["red"]}
    valid = {"wall": "north"}
    assert decode_arguments(MCP_PAINT, valid) is valid


def test_a_schema_with_alternatives_is_converted_to_the_first_type_that_fits() -> None:
    count = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert normalize_object({"properties": {"count": count}}, {"count": "5"}) == {"count": 5}


@pytest.mark.parametrize("name", ["path", "file_path", "filePath", "filename", "file", "target_file"])
def test_a_path_is_accepted_under_the_names_of_other_agents(name: str) -> None:
    assert decode_arguments(READ, {name: "a.py", "offset": "5"}) == ReadArguments("a.py", 5)


def test_edits_are_accepted_under_the_names_of_other_agents() -> None:
    given = {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": "true"}
    assert decode_arguments(EDIT, given) == EditArguments("a", "x", "y", True)
    nested = {"path": "a", "edits": [{"old_str": "x", "newStr": "y"}]}
    assert decode_arguments(EDIT, nested) == EditArguments("a", edits=(Replacement("x", "y"),))


def test_a_command_under_another_name_is_decoded_into_the_field_that_the_analysis_reads() -> None:
    decoded = decode_arguments(SHELL, {"cmd": "make"})
    assert decoded == ShellArguments("make")


@pytest.mark.parametrize(
    "given",
    [
        {"command": "ls", "cmd": "make"},
        {"cmd": "ls", "Cmd": "make"},
        {"cmd": "ls", "x": "1"},
        {"cmd": ["ls"]},
    ],
)
def test_an_alias_beside_its_argument_or_another_alias_is_rejected(given: dict[str, Any]) -> None:
    with pytest.raises(ToolError):
        decode_arguments(SHELL, given)


def test_an_alias_that_is_an_argument_of_the_tool_keeps_its_meaning() -> None:
    schema = {"properties": {"path": {"type": "string"}, "file": {"type": "string"}}, "required": ["path"]}
    with pytest.raises(ToolError, match="needs path"):
        decode_arguments(ToolSpec("both", "", schema), {"file": "a"})


def test_no_name_has_two_meanings_in_a_built_in_tool() -> None:
    for module in pkgutil.walk_packages(hark.tools.__path__, "hark.tools."):
        importlib.import_module(module.name)
    built_in = [kind for kind in ToolArguments.__subclasses__() if kind.__module__.startswith("hark.tools")]
    assert len(built_in) > 10
    for arguments in built_in:
        names = build_schema(arguments)["properties"]
        aliases = [alias for name in names for alias in ALIASES.get(name, ()) if alias not in names]
        assert len(set(aliases)) == len(aliases), arguments


def test_arguments_are_normalized_in_linear_time() -> None:
    def make(size: int) -> dict[str, Any]:
        return {"wall": "n", "sizes": ["1"] * size, "options": '{"names": [' + '"x",' * size + '"x"]}'}

    def normalize(given: dict[str, Any]) -> None:
        normalize_object(PAINT.parameters, given)

    assert_linear(make, normalize, 5_000)


def test_a_property_with_the_schema_true_accepts_any_value() -> None:
    spec = ToolSpec("t", "d", {"type": "object", "properties": {"any": True, "count": {"type": "integer"}}})
    assert normalize_object(spec.parameters, {"any": "5", "count": "5"}) == {"any": "5", "count": 5}
    assert find_argument_problem(spec, {"any": [1], "count": 5}) is None
