"""The secrets in the settings: hidden in all output, and redacted in logs and telemetry."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import msgspec

from hark.app.settings.types import Settings
from hark.mcp.settings import ServerSettingsError, read_servers
from hark.text.redaction import find_secrets_in_url, is_secret_name

PLACEHOLDER = "(set)"
MIN_CHARACTERS = 6  # a shorter secret would match ordinary text
_ENV_SUFFIX = "_env"
_SECRET_TABLES = ("env", "headers")
_IN_ADDRESS = re.compile(r"(?<=//)[^/@\s]*@")


def hide_secrets(value: Any, *, is_secret: bool = False) -> Any:
    """Return the value with every secret replaced by a placeholder.

    A setting whose name ends with `_env` contains the name of a variable, not the secret itself.
    """
    match value:
        case dict():
            table = cast("dict[str, Any]", value)
            return {
                name: hide_secrets(item, is_secret=is_secret or _is_secret_key(name)) for name, item in table.items()
            }
        case list() | tuple():
            return [hide_secrets(item, is_secret=is_secret) for item in cast("list[Any]", value)]
        case str() if is_secret and value:
            return PLACEHOLDER
        case str():
            return _IN_ADDRESS.sub(f"{PLACEHOLDER}@", value)
        case _:
            return value


def known_secrets(
    settings: Settings, environment: Mapping[str, str] | None = None, routes: Sequence[Mapping[str, Any]] = ()
) -> Sequence[str]:
    """Return all secrets in the settings, the given routes, and environment variables whose names suggest secrets.

    Logs and telemetry redact them. Longer secrets come first, since they may contain shorter ones.
    """
    variables = os.environ if environment is None else environment
    found = {value for name, value in variables.items() if is_secret_name(name)}
    found |= set(_find_secrets([msgspec.to_builtins(settings), *routes], "", variables))
    with suppress(ServerSettingsError):  # reported when the servers are started
        found |= {secret for server in read_servers(settings.mcp).values() for secret in server.secrets()}
    return sorted((secret for secret in found if len(secret) >= MIN_CHARACTERS), key=len, reverse=True)


def _find_secrets(value: object, setting_name: str, variables: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets in a value of the settings. `setting_name` is the value's key."""
    match value:
        case dict():
            for key, inner in cast("dict[str, Any]", value).items():
                yield from _find_secrets(inner, str(key), variables)
        case list() | tuple():
            for inner in cast("list[Any]", value):
                yield from _find_secrets(inner, setting_name, variables)
        case str() if setting_name.endswith(_ENV_SUFFIX):
            yield variables.get(value, "")
        case str() if is_secret_name(setting_name):
            yield value
        case str():
            yield from find_secrets_in_url(value)
        case _:
            pass


def _is_secret_key(name: str) -> bool:
    return name in _SECRET_TABLES or (not name.endswith(_ENV_SUFFIX) and is_secret_name(name))
