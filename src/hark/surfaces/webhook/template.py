"""Texts made of a foreign payload: `{repository.full_name}: {action}`; `{commits.0.message|none}` has a default."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from hark.surfaces.web.api.errors import ApiError

MOST_CHARACTERS = 50_000
_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_MISSING = object()


class Template:
    """A text with placeholders: names with dots between them lead into the payload, numbers into lists."""

    def __init__(self, text: str) -> None:
        """Raises ValueError when the text has a brace that opens or closes nothing."""
        self._text = text
        for found in _PART.finditer(text):
            if found[0] in "{}" or not (found[1] is None or found[1].partition("|")[0].strip()):
                raise ValueError(f"In the template {text!r} the brace at {found.start()} is no placeholder.")

    def fill(self, payload: object) -> str:
        """Return the text with what the payload has.

        Raises:
            ApiError: It lacks something, for which there is no default.
        """

        def value(found: re.Match[str]) -> str:
            if found[1] is None:
                return found[0][0]
            path, bar, usual = found[1].partition("|")
            there = _look(payload, path.strip())
            if there is _MISSING and not bar:
                raise ApiError(422, "bad_payload", _lacks(payload, path.strip()))
            return usual if there is _MISSING else _words(there)

        text = _PART.sub(value, self._text)
        return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} …"


def _look(payload: object, path: str) -> object:
    for name in path.split("."):
        if isinstance(payload, Mapping):
            payload = cast("Mapping[str, Any]", payload).get(name, _MISSING)
        elif isinstance(payload, list) and name.isascii() and name.isdigit() and len(name) < 10:
            items = cast("Sequence[Any]", payload)
            payload = items[int(name)] if int(name) < len(items) else _MISSING
        else:
            return _MISSING
    return payload if payload is not None else _MISSING


def _lacks(payload: object, path: str) -> str:
    """Say what there is where the path breaks off."""
    names = path.split(".")
    reached = next(count for count in range(len(names), -1, -1) if not count or _is_there(payload, names[:count]))
    place = payload if not reached else _look(payload, ".".join(names[:reached]))
    where = ".".join(names[:reached]) or "the payload"
    if isinstance(place, Mapping):
        has = ", ".join(sorted(cast("Mapping[str, Any]", place))[:20]) or "nothing"
    elif isinstance(place, list):
        has = f"{len(cast('list[Any]', place))} items"
    else:
        has = "no more below it"
    return f"The template wants {{{path}}}, but {where} has {has}. Write {{{path}|...}} for a default."


def _is_there(payload: object, names: Sequence[str]) -> bool:
    return _look(payload, ".".join(names)) is not _MISSING


def _words(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
