"""The secrets of the settings: left out of what is shown, and known to logs and telemetry, which mask them."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import msgspec

from hark.app.settings.types import Settings
from hark.mcp.settings import ServerSettingsError, read_servers
from hark.text.redaction import is_secret_name, secrets_in_address

SET = "(set)"
LEAST_CHARACTERS = 6  # a shorter one would be found in every other word
_FROM_ENVIRONMENT = "_env"
_WHOLLY_SECRET = ("env", "headers")
_IN_ADDRESS = re.compile(r"(?<=//)[^/@\s]*@")


def without_secrets(value: Any, *, is_secret: bool = False) -> Any:
    """Return the value with every secret replaced by a word that says it is there.

    A name that ends with `_env` tells where a secret is, and is none.
    """
    match value:
        case dict():
            table = cast("dict[str, Any]", value)
            return {name: without_secrets(item, is_secret=is_secret or _hides(name)) for name, item in table.items()}
        case list() | tuple():
            return [without_secrets(item, is_secret=is_secret) for item in cast("list[Any]", value)]
        case str() if is_secret and value:
            return SET
        case str():
            return _IN_ADDRESS.sub(f"{SET}@", value)
        case _:
            return value


def known_secrets(
    settings: Settings, environment: Mapping[str, str] | None = None, routes: Sequence[Mapping[str, Any]] = ()
) -> Sequence[str]:
    """Return every secret of the settings and of other routes, and of variables with a name that promises one.

    Logs and telemetry mask these. The longest come first: one may be a part of another.
    """
    variables = os.environ if environment is None else environment
    found = {value for name, value in variables.items() if is_secret_name(name)}
    found |= set(_within([msgspec.to_builtins(settings), *routes], "", variables))
    with suppress(ServerSettingsError):  # told by who starts the servers
        found |= {secret for server in read_servers(settings.mcp).values() for secret in server.secrets()}
    return sorted((secret for secret in found if len(secret) >= LEAST_CHARACTERS), key=len, reverse=True)


def _within(value: object, name: str, variables: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets in a value of the settings, which stands under this name."""
    match value:
        case dict():
            for key, inner in cast("dict[str, Any]", value).items():
                yield from _within(inner, str(key), variables)
        case list() | tuple():
            for inner in cast("list[Any]", value):
                yield from _within(inner, name, variables)
        case str() if name.endswith(_FROM_ENVIRONMENT):
            yield variables.get(value, "")
        case str() if is_secret_name(name):
            yield value
        case str():
            yield from secrets_in_address(value)
        case _:
            pass


def _hides(name: str) -> bool:
    return name in _WHOLLY_SECRET or (not name.endswith(_FROM_ENVIRONMENT) and is_secret_name(name))
