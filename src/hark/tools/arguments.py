"""Checks a call's arguments against the tool's schema, and says what is wrong in a sentence for the model."""

from collections.abc import Mapping, Sequence
from typing import Any

from hark.protocol.tool import ToolSpec

_NAMES = {"string": "text", "number": "a number", "integer": "a whole number", "boolean": "true or false"}


def check(spec: ToolSpec, arguments: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the arguments, or None.

    Looks at what models get wrong: names, what is required, plain types and enumerations. What is nested is the tool's
    own matter. An optional argument may be null: many models send all of them.
    """
    properties: dict[str, dict[str, Any]] = spec.parameters.get("properties", {})
    required: Sequence[str] = spec.parameters.get("required", ())
    missing = [name for name in required if name not in arguments]
    if missing:
        return f"{spec.name} needs {', '.join(missing)}: call it again with {_these(missing)}."
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


def _these(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _problem(schema: Mapping[str, Any], value: object) -> str | None:
    kinds = _kinds(schema)
    if kinds and not any(_is_kind(kind, value) for kind in kinds):
        return f"expected {' or '.join(_NAMES.get(kind, kind) for kind in kinds)}, got {_kind_of(value)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"expected one of {', '.join(map(str, schema['enum']))}, got {value}"
    return None


def _kinds(schema: Mapping[str, Any]) -> Sequence[str]:
    kind: str | Sequence[str] = schema.get("type", ())
    return (kind,) if isinstance(kind, str) else kind


def _is_kind(kind: str, value: object) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list | tuple)
        case "object":
            return isinstance(value, Mapping)
        case "null":
            return value is None
        case _:
            return True


def _kind_of(value: object) -> str:
    kinds = ("null", "string", "boolean", "integer", "number", "array", "object")
    return next((_NAMES.get(kind, kind) for kind in kinds if _is_kind(kind, value)), type(value).__name__)
