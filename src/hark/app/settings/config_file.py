"""Edits config.toml: replaces its routes and leaves everything else unchanged."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hark.app.settings import SettingsError
from hark.app.settings.types import RouteSettings

_LAST_COMMENTS = re.compile(r"(?:^[ \t\r]*(?:#[^\n]*)?\n)*\Z", re.MULTILINE)

_UNUSUAL_LAYOUT = "config.toml has an unusual layout. Change its routes by hand; see docs/settings.md."


def read_config(file: Path) -> str:
    """Return the file's text with its line endings unchanged; "" if there is no file.

    Raises:
        OSError, UnicodeDecodeError: The file can't be read.
    """
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return ""


def replace_routes(text: str, route: RouteSettings) -> str:
    """Return the text of the settings with this route in place of all existing routes.

    Raises:
        SettingsError: The text is not valid TOML, or its routes can't be replaced safely.
    """
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"config.toml is not valid TOML: {error}. Fix that line, or remove the file.") from error
    line_end = "\r\n" if "\r\n" in text else "\n"
    remaining = _without_routes(text).rstrip() if "routes" in before else text.rstrip()
    # A JSON string is also a valid TOML string, with the same escapes.
    lines = [f"{name} = {msgspec.json.encode(value).decode()}" for name, value in _nonempty_fields(route)]
    after = line_end.join([*([remaining, ""] if remaining else []), "[[routes]]", *lines, ""])
    if tomllib.loads(after) != {**before, "routes": [dict(_nonempty_fields(route))]}:
        raise SettingsError(_UNUSUAL_LAYOUT)
    return after


def _nonempty_fields(route: RouteSettings) -> Iterator[tuple[str, str]]:
    for name, value in msgspec.structs.asdict(route).items():
        if isinstance(value, str) and value:
            yield name, value


def _without_routes(text: str) -> str:
    """Return the text without its routes. Comments after the last route belong to the next section and remain."""
    import tomlkit  # imported only for an edit
    from tomlkit.exceptions import TOMLKitError
    from tomlkit.items import AoT

    try:
        document = tomlkit.parse(text)
        index, routes = next((n, item) for n, (key, item) in enumerate(document.body) if key and key.key == "routes")
    except (TOMLKitError, StopIteration) as error:
        raise SettingsError(_UNUSUAL_LAYOUT) from error
    comments = _LAST_COMMENTS.search(routes.as_string()) if isinstance(routes, AoT) else None
    document.remove("routes")
    document.body[index] = (None, tomlkit.ws(comments[0] if comments else ""))
    return document.as_string()
