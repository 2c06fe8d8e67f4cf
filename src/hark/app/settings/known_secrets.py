"""Which secrets the settings and the environment hold: no log may tell them."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import msgspec

from hark.app.settings.types import Settings
from hark.mcp.settings import ServerSettingsError, read_servers
from hark.protocol.redaction import is_secret_name, secrets_in_address

LEAST_CHARACTERS = 6  # a shorter one would be found in every other word
_FROM_ENVIRONMENT = "_env"


def known_secrets(settings: Settings, environment: Mapping[str, str] | None = None) -> Sequence[str]:
    """Return every secret that the settings name, and what the environment has under a name that promises one.

    The longest come first: one may be a part of another.
    """
    variables = os.environ if environment is None else environment
    found = {value for name, value in variables.items() if is_secret_name(name)}
    found |= set(_within(msgspec.to_builtins(settings), "", variables))
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
