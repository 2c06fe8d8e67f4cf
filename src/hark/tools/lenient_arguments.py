"""Reads arguments that nearly match a tool's schema: known under another name, or sent as another type."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

# The names of the same arguments in other agents' tools, in lower case with underscores.
ALIASES = {
    "path": ("file_path", "filepath", "file", "filename", "file_name", "target_file", "directory", "dir", "folder"),
    "command": ("cmd",),
    "old": ("old_string", "old_str", "old_text"),
    "new": ("new_string", "new_str", "new_text"),
    "all": ("replace_all",),
    "pattern": ("query", "regex"),
    "glob": ("include", "file_pattern", "glob_pattern"),
    "query": ("pattern", "q", "search_query", "search_term"),
    "content": ("contents", "text", "file_text", "file_content"),
    "text": ("content",),
    "code": ("script",),
    "patch": ("input", "diff", "patch_text"),
    "goal": ("prompt", "task"),
    "url": ("uri", "link"),
}
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "null": type(None),
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": (list, tuple),
    "object": Mapping,
}
JSON_TYPES = tuple(_PYTHON_TYPES)


def normalize_object(schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object with the names and types of its schema, where the meaning is certain. The caller checks it."""
    properties = properties_of(schema)
    is_open = is_open_schema(schema)
    normalized: dict[str, Any] = {}
    for name, value in given.items():
        known = name if is_open or name in properties else _find_name(name, properties)
        if known != name and (known in given or known in normalized):
            known = name
        normalized[known] = _convert(properties.get(known, {}), value)
    return normalized


def properties_of(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the schemas of an object's properties. A schema `true`, which accepts any value, becomes an empty one."""
    return {name: inner if isinstance(inner, dict) else {} for name, inner in schema.get("properties", {}).items()}


def is_open_schema(schema: Mapping[str, Any]) -> bool:
    """Return whether an object may have other properties. A server that sent no properties has no real schema yet."""
    return "properties" not in schema or bool(schema.get("additionalProperties"))


def has_json_type(json_type: str, value: object) -> bool:
    """Return whether a value has this JSON type. An unknown type matches every value."""
    if isinstance(value, bool):
        return json_type not in _PYTHON_TYPES or json_type == "boolean"
    return isinstance(value, _PYTHON_TYPES.get(json_type, object))


def _find_name(name: str, properties: Mapping[str, Any]) -> str:
    words = _WORD_START.sub("_", name).replace("-", "_").lower()
    names = [words] if words in properties else [known for known in properties if words in ALIASES.get(known, ())]
    return names[0] if len(names) == 1 else name


def _convert(schema: Mapping[str, Any], value: Any) -> Any:
    """Return the value in the type of its schema. Text may contain the value as JSON."""
    kinds = [kind for option in (schema, *schema.get("anyOf", ())) for kind in list_types(option)]
    if "object" in kinds and has_json_type("object", value):
        return normalize_object(schema, value)
    if "array" in kinds and has_json_type("array", value):
        return [_convert(schema.get("items", {}), item) for item in value]
    if not kinds or any(has_json_type(kind, value) for kind in kinds):
        return value
    if isinstance(value, float) and "integer" in kinds and value.is_integer():
        return int(value)
    return _convert_text(schema, kinds, value) if isinstance(value, str) else value


def _convert_text(schema: Mapping[str, Any], kinds: list[str], text: str) -> Any:
    try:
        value: object = msgspec.json.decode(text.lower() if text.lower() in ("true", "false") else text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        value = text
    if not isinstance(value, str | None):
        converted = _convert(schema, value)
        if any(has_json_type(kind, converted) for kind in kinds):
            return converted
    return [text] if "array" in kinds and list_types(schema.get("items", {})) == ["string"] else text


def list_types(schema: Mapping[str, Any]) -> list[str]:
    """Return the JSON types that a schema allows, or an empty list if it allows all."""
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)
