"""Whether the tables `[surfaces.NAME]` can be used: their names, their keys, and the secrets that they need."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec
from msgspec import structs

from hark.surfaces.chat.settings import PLATFORMS, load_platform, secret

STOP_WORDS = "stop_words"
TYPED = ("terminal", "page", "api", "acp")  # surfaces of people that are always there
ELSEWHERE = {"web": "the page and the API are set up in [serve]"}


def surface_errors(surfaces: Mapping[str, Any]) -> Iterator[str]:
    """Yield why the surfaces can't be run as these tables say."""
    for name, table in surfaces.items():
        where = f"surfaces.{name}"
        if name in ELSEWHERE:
            continue
        if name not in (*PLATFORMS, *TYPED):
            yield f"{where}: there is no such surface. There are: {', '.join((*PLATFORMS, *TYPED))}."
        elif not isinstance(table, dict):
            yield f"{where} must be a table: write [{where}]."
        elif name in TYPED:
            yield from _typed_problems(where, cast("dict[str, Any]", table))
        else:
            yield from (f"{where}: {problem}" for problem in _problems(name, cast("dict[str, Any]", table)))


def surface_warnings(surfaces: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is suspicious."""
    for name, table in surfaces.items():
        if name in ELSEWHERE:
            yield f"surfaces.{name} is not looked at: {ELSEWHERE[name]}."
        elif name == "webhook" and isinstance(table, dict) and not cast("dict[str, Any]", table).get("hooks"):
            yield "surfaces.webhook has no hooks: no program can call. Write [surfaces.webhook.hooks.NAME]."
        elif isinstance(table, dict) and "*" in cast("dict[str, Any]", table).get("allow", ()):
            yield f'surfaces.{name}.allow has "*": everybody who finds it can use this machine through your agent.'


def _typed_problems(where: str, table: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the table of a surface that is no chat."""
    yield from (
        f"{where}.{key} is not a setting: stop_words is the only one there." for key in table if key != STOP_WORDS
    )
    if not isinstance(table.get(STOP_WORDS, True), bool):
        yield f"{where}.{STOP_WORDS} must be true or false."


def _problems(name: str, table: dict[str, Any]) -> Iterator[str]:
    platform = load_platform(name)
    try:
        settings = platform.read(table)
    except msgspec.ValidationError as error:
        yield f"{error}. See docs/{name}.md."
        return
    unknown = [key for key in table if key not in settings.__struct_fields__]
    yield from (f"{key} is not a setting of it. See docs/{name}.md." for key in unknown)
    values = structs.asdict(settings)
    for wanted in platform.secrets(settings):
        variable = values.get(f"{wanted}_env", "")
        if secret(values[wanted], variable):
            continue
        told = f"{wanted}_env says that {variable} has it, but that is not set" if variable else "neither is there"
        yield f"it needs {wanted} or {wanted}_env; {told}."
    yield from platform.problems(settings)
