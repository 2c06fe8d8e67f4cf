"""Tool arguments: a struct from which the model's JSON schema is generated, and into which calls are decoded."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from hark.protocol.tool import PredictedEffects, ToolError, ToolSpec
from hark.tools.lenient_arguments import (
    JSON_TYPES,
    has_json_type,
    is_open_schema,
    list_types,
    normalize_object,
    properties_of,
)

_TYPE_LABELS = {"string": "text", "number": "a number", "integer": "a whole number", "boolean": "true or false"}


class ToolArguments(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The arguments of a tool. A subclass's docstring describes the tool to the model; its fields define the schema."""


AnyArguments = TypeVar("AnyArguments", bound=ToolArguments)


def doc(description: str, **constraints: Any) -> Meta:
    """Return metadata that describes an argument to the model. `constraints` are options of msgspec.Meta."""
    return Meta(description=description, **constraints)


def tool_spec(
    arguments: type[AnyArguments],
    name: str,
    *,
    description: str = "",
    is_changing: bool = False,
    grace_seconds: float = 0.1,
    predict: Callable[[AnyArguments], PredictedEffects] | None = None,
    folder_of: Callable[[str], Path | None] | None = None,
) -> ToolSpec:
    """Return a tool's spec. The description defaults to the docstring of `arguments`. See ToolSpec for options."""
    description = description or " ".join((arguments.__doc__ or "").split())
    schema = build_schema(arguments)
    return ToolSpec(name, description, schema, is_changing, grace_seconds, predict, folder_of, arguments)


def build_schema(arguments: type[ToolArguments]) -> dict[str, Any]:
    """Return the JSON schema in a form that every vendor accepts: without references, titles, defaults and nulls.

    A nested type must not contain itself.
    """
    full_schema = msgspec.json.schema(arguments)
    schema = _flatten_schema(full_schema, full_schema["$defs"])
    for name, hint in get_type_hints(arguments).items():
        if get_origin(hint) is Literal:  # restore the declared order, since msgspec sorts the choices
            schema["properties"][name]["enum"] = list(get_args(hint))
    return schema


def decode_arguments(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
    """Decode a call's arguments into the type that the tool expects.

    Models often send values in another type (`"5"` for 5), under the names of other agents' tools, or as null.
    Arguments that don't match are normalized, and then checked like any others. For an optional argument, null means
    the default, and so does 0 if the minimum is 1.

    Raises:
        ToolError: The arguments are invalid. The text names the wrong argument and the expected value.
    """
    try:
        return _check_and_decode(spec, arguments)
    except ToolError:
        normalized = normalize_object(spec.parameters, arguments)
        given = {name: value for name, value in normalized.items() if not _means_default(spec, name, value)}
        return _check_and_decode(spec, given)


def _check_and_decode(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
    if spec.arguments is None:
        if problem := find_argument_problem(spec, arguments):
            raise ToolError(problem)
        return arguments
    try:
        return msgspec.convert(arguments, spec.arguments)
    except msgspec.ValidationError as error:
        problem = find_argument_problem(spec, arguments) or _check_minimums(spec, arguments)
        raise ToolError(problem or _format_validation_error(error)) from error


def find_argument_problem(spec: ToolSpec, arguments: Mapping[str, Any]) -> str | None:
    """Return the first problem that the tool's JSON schema finds in the arguments, or None.

    Checks for models' usual mistakes in argument names, required arguments, plain types and enumerations. Nested
    values are left to the tool. An optional argument may be null, because many models send every argument.
    """
    properties = _properties(spec)
    required: Sequence[str] = spec.parameters.get("required", ())
    missing = [name for name in required if name not in arguments]
    if missing:
        return f"{spec.name} needs {', '.join(missing)}. Call it again with every required argument."
    unknown = [name for name in arguments if name not in properties]
    if unknown and not is_open_schema(spec.parameters):
        return f"{spec.name} has no argument {', '.join(unknown)}. Its arguments: {', '.join(properties) or 'none'}."
    for name, value in arguments.items():
        if name not in properties or (value is None and name not in required):
            continue
        schema = properties[name]
        kinds = list_types(schema)
        if kinds and not any(has_json_type(kind, value) for kind in kinds):
            expected = " or ".join(_TYPE_LABELS.get(kind, kind) for kind in kinds)
            return f"{name}: expected {expected}, got {_json_type_label(value)}."
        if value not in schema.get("enum", (value,)):
            return f"{name}: expected one of {', '.join(map(str, schema['enum']))}, got {value}."
    return None


def _flatten_schema(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    outer = {key: value for key, value in schema.items() if key not in ("$ref", "$defs", "anyOf", "default")}
    if "$ref" in schema:
        inner = definitions[schema["$ref"].rpartition("/")[2]]
        outer = {**{key: value for key, value in inner.items() if key not in ("title", "description")}, **outer}
    for option in schema.get("anyOf", ()):
        if option != {"type": "null"}:
            outer = {**_flatten_schema(option, definitions), **outer}
    if "properties" in outer:
        outer["properties"] = {name: _flatten_schema(one, definitions) for name, one in outer["properties"].items()}
    if "items" in outer:
        outer["items"] = _flatten_schema(outer["items"], definitions)
    if "enum" in outer:
        outer = {"type": "string", **outer}
    if not outer.get("required", True):
        del outer["required"]
    return outer


def _properties(spec: ToolSpec) -> dict[str, Mapping[str, Any]]:
    return properties_of(spec.parameters)


def _means_default(spec: ToolSpec, name: str, value: object) -> bool:
    schema = _properties(spec).get(name)
    if schema is None or name in spec.parameters.get("required", ()):
        return False
    return value is None or (value == 0 and schema.get("minimum") == 1)


def _check_minimums(spec: ToolSpec, arguments: Mapping[str, Any]) -> str | None:
    """Return a message about the first number below its minimum, or None."""
    for name, schema in _properties(spec).items():
        value, kind = arguments.get(name), _TYPE_LABELS.get(schema.get("type", ""), "")
        hint = "" if name in spec.parameters.get("required", ()) else " Or omit it."
        if not isinstance(value, int | float):
            continue
        if "minimum" in schema and value < schema["minimum"]:
            return f"{name}: expected {kind} of at least {schema['minimum']}, got {value}.{hint}"
        if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
            return f"{name}: expected {kind} above {schema['exclusiveMinimum']}, got {value}.{hint}"
    return None


def _format_validation_error(error: msgspec.ValidationError) -> str:
    """Reword a validation error for the model, for example as "count: expected int, got str."."""
    what, _, where = str(error).replace("`", "").partition(" - at ")
    place = where.removeprefix("$").removeprefix(".")
    return f"{place}: {what[0].lower()}{what[1:]}." if place else f"{what}."


def _json_type_label(value: object) -> str:
    kind = next((kind for kind in JSON_TYPES if has_json_type(kind, value)), type(value).__name__)
    return _TYPE_LABELS.get(kind, kind)
