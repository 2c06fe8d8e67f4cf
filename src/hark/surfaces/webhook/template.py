"""Build texts from a foreign payload, as in `{repository.full_name}: {action}`. In `{a.0.b|none}`, `none` is the
default.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from hark.surfaces.web.api.errors import ApiError
from hark.text.graphemes import shorten

MAX_CHARACTERS = 50_000
_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_MISSING = object()


class Template:
    """A text with placeholders. Dotted names are paths into the payload; numbers are list indexes."""

    def __init__(self, text: str) -> None:
        """Parse a template. Raises ValueError if it has a brace that isn't part of a placeholder."""
        self._text = text
        for found in _PART.finditer(text):
            if found[0] in "{}" or not (found[1] is None or found[1].partition("|")[0].strip()):
                raise ValueError(f"Template {text!r}: the brace at position {found.start()} is not in a placeholder.")

    def fill(self, payload: object) -> str:
        """Return the text with the placeholders replaced by the payload's values.

        Raises:
            ApiError: The payload lacks a value that has no default.
        """

        def replace_placeholder(match: re.Match[str]) -> str:
            if match[1] is None:
                return match[0][0]
            path, bar, default = match[1].partition("|")
            value = _resolve_path(payload, path.strip())
            if value is _MISSING and not bar:
                raise ApiError(422, "bad_payload", _describe_missing(payload, path.strip()))
            return default if value is _MISSING else _format_value(value)

        return shorten(_PART.sub(replace_placeholder, self._text), MAX_CHARACTERS)


def _resolve_path(payload: object, path: str) -> object:
    for name in path.split("."):
        if isinstance(payload, Mapping):
            payload = cast("Mapping[str, Any]", payload).get(name, _MISSING)
        elif isinstance(payload, list) and name.isascii() and name.isdigit() and len(name) < 10:
            items = cast("Sequence[Any]", payload)
            payload = items[int(name)] if int(name) < len(items) else _MISSING
        else:
            return _MISSING
    return payload if payload is not None else _MISSING


def _describe_missing(payload: object, path: str) -> str:
    """Return an error message that lists the values available at the point where the path fails."""
    names = path.split(".")
    reached = next(count for count in range(len(names), -1, -1) if not count or _has_path(payload, names[:count]))
    found = payload if not reached else _resolve_path(payload, ".".join(names[:reached]))
    where = ".".join(names[:reached]) or "the payload"
    if isinstance(found, Mapping):
        has = ", ".join(sorted(cast("Mapping[str, Any]", found))[:20]) or "nothing"
    elif isinstance(found, list):
        has = f"{len(cast('list[Any]', found))} items"
    else:
        has = "no nested values"
    return f"The template needs {{{path}}}, but {where} has {has}. Write {{{path}|...}} to set a default."


def _has_path(payload: object, names: Sequence[str]) -> bool:
    return _resolve_path(payload, ".".join(names)) is not _MISSING


def _format_value(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
