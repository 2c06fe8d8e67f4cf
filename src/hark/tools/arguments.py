"""The arguments of a tool: a struct that the model's schema is generated from, and that calls are decoded into."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from hark.protocol.tool import Foreseen, ToolError, ToolSpec

_NAMES = {"string": "text", "number": "a number", "integer": "a whole number", "boolean": "true or false"}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "null": type(None),
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": (list, tuple),
    "object": Mapping,
}


class ToolArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a tool. The docstring describes the tool to the model, the fields are its JSON schema."""


AnyArguments = TypeVar("AnyArguments", bound=ToolArguments)


def doc(description: str, **more: Any) -> Meta:
    """Describe a field to the model; `more` are bounds, as msgspec.Meta takes them."""
    return Meta(description=description, **more)


def tool_spec(
    arguments: type[AnyArguments],
    name: str,
    *,
    description: str = "",
    is_changing: bool = False,
    grace_seconds: float = 0.1,
    foresee: Callable[[AnyArguments], Foreseen] | None = None,
    folder_of: Callable[[str], Path | None] | None = None,
) -> ToolSpec:
    """Return the spec of a tool that takes these arguments; the rest is as in ToolSpec."""
    description = description or " ".join((arguments.__doc__ or "").split())
    schema = schema_of(arguments)
    return ToolSpec(name, description, schema, is_changing, grace_seconds, foresee, folder_of, arguments)


def schema_of(arguments: type[ToolArguments]) -> dict[str, Any]:
    """Return the schema as every vendor takes it: without references, titles, defaults and null.

    A nested type must not contain itself.
    """
    whole = msgspec.json.schema(arguments)
    schema = _plain(whole, whole["$defs"])
    for name, hint in get_type_hints(arguments).items():
        if get_origin(hint) is Literal:  # as declared: msgspec sorts them
            schema["properties"][name]["enum"] = list(get_args(hint))
    return schema


def decode(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
    """Return a call's arguments as the tool takes them.

    Many models send every argument: an optional one may be null, or 0 where numbers start at 1, for the default.

    Raises:
        ToolError: They don't fit; the text says which, and what was expected.
    """
    if spec.arguments is None:
        if problem := check(spec, arguments):
            raise ToolError(problem)
        return arguments
    try:
        return msgspec.convert(arguments, spec.arguments)
    except msgspec.ValidationError:
        given = {name: value for name, value in arguments.items() if not _is_left_out(spec, name, value)}
    try:
        return msgspec.convert(given, spec.arguments)
    except msgspec.ValidationError as error:
        raise ToolError(check(spec, given) or _bounds(spec, given) or _sentence(error)) from error


def check(spec: ToolSpec, arguments: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the arguments by the tool's JSON schema, or None.

    Looks at what models get wrong: names, what is required, plain types and enumerations. What is nested is the tool's
    own matter. An optional argument may be null: many models send all of them.
    """
    properties = _properties(spec)
    required: Sequence[str] = spec.parameters.get("required", ())
    missing = [name for name in required if name not in arguments]
    if missing:
        return f"{spec.name} needs {', '.join(missing)}: call it again with {'it' if len(missing) == 1 else 'them'}."
    # A schema without properties, as of a server that has not told them yet, takes whatever comes.
    is_open = "properties" not in spec.parameters or spec.parameters.get("additionalProperties")
    unknown = [name for name in arguments if name not in properties]
    if unknown and not is_open:
        return f"{spec.name} has no argument {', '.join(unknown)}: it takes {', '.join(properties) or 'none'}."
    for name, value in arguments.items():
        if name not in properties or (value is None and name not in required):
            continue
        if problem := _problem(properties[name], value):
            return f"{name}: {problem}."
    return None


def _plain(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    outer = {key: value for key, value in schema.items() if key not in ("$ref", "$defs", "anyOf", "default")}
    if "$ref" in schema:
        inner = definitions[schema["$ref"].rpartition("/")[2]]
        outer = {**{key: value for key, value in inner.items() if key not in ("title", "description")}, **outer}
    for option in schema.get("anyOf", ()):
        if option != {"type": "null"}:
            outer = {**option, **outer}
    if "properties" in outer:
        outer["properties"] = {name: _plain(one, definitions) for name, one in outer["properties"].items()}
    if "items" in outer:
        outer["items"] = _plain(outer["items"], definitions)
    if "enum" in outer:
        outer = {"type": "string", **outer}
    if not outer.get("required", True):
        del outer["required"]
    return outer


def _properties(spec: ToolSpec) -> dict[str, dict[str, Any]]:
    return spec.parameters.get("properties", {})


def _is_left_out(spec: ToolSpec, name: str, value: object) -> bool:
    schema = _properties(spec).get(name)
    if schema is None or name in spec.parameters.get("required", ()):
        return False
    return value is None or (value == 0 and schema.get("minimum") == 1)


def _bounds(spec: ToolSpec, arguments: Mapping[str, Any]) -> str | None:
    """Return which number is too small."""
    for name, schema in _properties(spec).items():
        value, kind = arguments.get(name), _NAMES.get(schema.get("type", ""), "")
        rest = "" if name in spec.parameters.get("required", ()) else " Or leave it out."
        if not isinstance(value, int | float):
            continue
        if "minimum" in schema and value < schema["minimum"]:
            return f"{name}: expected {kind} from {schema['minimum']} on, got {value}.{rest}"
        if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
            return f"{name}: expected {kind} above {schema['exclusiveMinimum']}, got {value}.{rest}"
    return None


def _sentence(error: msgspec.ValidationError) -> str:
    """Turn "Expected `int`, got `str` - at `$.count`" into "count: expected int, got str."."""
    what, _, where = str(error).replace("`", "").partition(" - at ")
    place = where.removeprefix("$").removeprefix(".")
    return f"{place}: {what[0].lower()}{what[1:]}." if place else f"{what}."


def _problem(schema: Mapping[str, Any], value: object) -> str | None:
    kind: str | Sequence[str] = schema.get("type", ())
    kinds = (kind,) if isinstance(kind, str) else kind
    if kinds and not any(_is_kind(kind, value) for kind in kinds):
        return f"expected {' or '.join(_NAMES.get(kind, kind) for kind in kinds)}, got {_kind_of(value)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"expected one of {', '.join(map(str, schema['enum']))}, got {value}"
    return None


def _is_kind(kind: str, value: object) -> bool:
    if isinstance(value, bool):
        return kind not in _TYPES or kind == "boolean"
    return isinstance(value, _TYPES.get(kind, object))


def _kind_of(value: object) -> str:
    return next((_NAMES.get(kind, kind) for kind in _TYPES if _is_kind(kind, value)), type(value).__name__)
