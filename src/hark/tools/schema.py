"""The JSON schema of a tool, generated from the struct of its arguments."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from hark.protocol.tool import Foreseen, ToolSpec
from hark.tools.arguments import ToolArguments

AnyArguments = TypeVar("AnyArguments", bound=ToolArguments)


def tool_spec(
    arguments: type[AnyArguments],
    *,
    name: str,
    description: str,
    is_changing: bool = False,
    grace_seconds: float = 0.1,
    foresee: Callable[[AnyArguments], Foreseen] | None = None,
) -> ToolSpec:
    """Return the spec of a tool that takes these arguments; the rest is as in ToolSpec."""
    schema = schema_of(arguments)
    return ToolSpec(name, description, schema, is_changing, grace_seconds, foresee, arguments=arguments)


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
