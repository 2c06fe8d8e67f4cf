"""Edits config.toml: replaces its routes and keeps everything else as it is written."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hark.app.settings import SettingsError
from hark.app.settings.types import RouteSettings

_LAST_COMMENTS = re.compile(r"(?:^[ \t\r]*(?:#[^\n]*)?\n)*\Z", re.MULTILINE)

_UNUSUAL = "config.toml has an unusual form: change its routes by hand, see docs/settings.md."


def read_config(file: Path) -> str:
    """Return the text with its line ends as they are; "" if there is no file.

    Raises:
        OSError, UnicodeDecodeError: It can't be read.
    """
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return ""


def with_route(text: str, route: RouteSettings) -> str:
    """Return the settings with this route in place of those that they have.

    Raises:
        SettingsError: They can't be read, or have routes that can't be replaced safely.
    """
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"config.toml is not valid TOML: {error}. Mend that line, or remove the file.") from error
    line_end = "\r\n" if "\r\n" in text else "\n"
    kept = _without_routes(text).rstrip() if "routes" in before else text.rstrip()
    # A string in JSON is one in TOML, too: escapes and all.
    lines = [f"{name} = {msgspec.json.encode(value).decode()}" for name, value in _filled(route)]
    after = line_end.join([*([kept, ""] if kept else []), "[[routes]]", *lines, ""])
    if tomllib.loads(after) != {**before, "routes": [dict(_filled(route))]}:
        raise SettingsError(_UNUSUAL)
    return after


def _filled(route: RouteSettings) -> Iterator[tuple[str, str]]:
    for name, value in msgspec.structs.asdict(route).items():
        if isinstance(value, str) and value:
            yield name, value


def _without_routes(text: str) -> str:
    """Return the text without routes. Comments behind the last one belong to what follows, and stay."""
    import tomlkit  # only for an edit
    from tomlkit.exceptions import TOMLKitError
    from tomlkit.items import AoT

    try:
        document = tomlkit.parse(text)
        place, routes = next((n, item) for n, (key, item) in enumerate(document.body) if key and key.key == "routes")
    except (TOMLKitError, StopIteration) as error:
        raise SettingsError(_UNUSUAL) from error
    comments = _LAST_COMMENTS.search(routes.as_string()) if isinstance(routes, AoT) else None
    document.remove("routes")
    document.body[place] = (None, tomlkit.ws(comments[0] if comments else ""))
    return document.as_string()
