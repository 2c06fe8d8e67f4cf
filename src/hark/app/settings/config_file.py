"""config.toml as a text: a route goes in, everything else stays as it is written."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hark.app.settings import SettingsError
from hark.app.settings.types import RouteSettings
from hark.disk.private_files import replace_private

_HEADER = re.compile(r"\s*\[")
_ROUTES_HEADER = re.compile(r"\s*\[\[?\s*routes\s*[.\]]")


def with_route(text: str, route: RouteSettings) -> str:
    """Return the settings with this route in place of those that they have.

    Raises:
        SettingsError: They can't be read, or have routes in a form that can't be taken out safely.
    """
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"config.toml is not valid TOML: {error}. Mend that line, or remove the file.") from error
    before.pop("routes", None)
    kept = _without_routes(text).rstrip()
    if not _says(kept, before):
        raise SettingsError("config.toml has an unusual form: change its routes by hand, see docs/settings.md.")
    # A string in JSON is one in TOML, too: escapes and all.
    lines = [f"{name} = {msgspec.json.encode(value).decode()}" for name, value in _filled(route)]
    return "\n".join([*([kept, ""] if kept else []), "[[routes]]", *lines, ""])


def write_private(file: Path, text: str) -> None:
    """Write a file that its owner alone may read: it may hold a key. Whole or not at all."""
    replace_private(file, text.encode())


def _filled(route: RouteSettings) -> Iterator[tuple[str, str]]:
    for name, value in msgspec.structs.asdict(route).items():
        if isinstance(value, str) and value:
            yield name, value


def _says(text: str, settings: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == settings
    except tomllib.TOMLDecodeError:
        return False


def _without_routes(text: str) -> str:
    lines: list[str] = []
    is_route = False
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line):
            is_route = _ROUTES_HEADER.match(line) is not None
        if not is_route:
            lines.append(line)
    return "".join(lines)
