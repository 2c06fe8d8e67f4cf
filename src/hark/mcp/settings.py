"""`[mcp.servers.NAME]`: what may stand there, as types."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct, field

from hark.text.redaction import is_secret_name, secrets_in_address

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class ServerSettingsError(Exception):
    """The settings of a server can't be used; the text says which, why, and what to do."""


class Start(StrEnum):
    """When a server is started. LAZY: when its tools aren't known yet, and else by the first call."""

    LAZY = "lazy"
    EAGER = "eager"


class OAuthSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How to log in to a remote server. Without a `client_id`, Hark registers itself with the server.

    `redirect_port` is where the browser comes back to on this machine: 0 is any port that is free.
    """

    client_id: str = ""
    client_secret: str = ""
    scope: str = ""
    redirect_port: int = 0


class ServerSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One server: a `command` to start, or a `url` to reach. `${VAR}` in `env` and `headers` comes from outside.

    `tools` are the only ones on offer, when it isn't empty; `deny` are those that never are. `start_seconds`: how long
    it may take to answer for the first time; `timeout_seconds`: how long a call may take.
    """

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict[str, str])
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    oauth: bool | OAuthSettings = False
    enabled: bool = True
    start: Start = Start.LAZY
    start_seconds: float = 30.0
    timeout_seconds: float = 600.0
    tools: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    @property
    def login(self) -> OAuthSettings | None:
        """How to log in, if at all."""
        if isinstance(self.oauth, OAuthSettings):
            return self.oauth
        return OAuthSettings() if self.oauth else None

    @property
    def fingerprint(self) -> str:
        """Other settings have another one, as far as they change what is offered. It tells nothing of them."""
        same = msgspec.structs.replace(self, enabled=True, start=Start.LAZY, start_seconds=30.0, timeout_seconds=600.0)
        return hashlib.sha256(msgspec.json.encode(same, order="sorted")).hexdigest()[:32]

    def secrets(self) -> Iterator[str]:
        """Yield what must not be told: passwords and keys in its variables, headers and address."""
        for name, value in (*self.env.items(), *self.headers.items()):
            try:
                known = expanded({name: value})[name]
            except ServerSettingsError:
                continue  # told when it is started
            if is_secret_name(name) or known != value or name in self.headers:
                yield known
                yield known.rpartition(" ")[2]  # Bearer SECRET
        yield from secrets_in_address(self.url)
        if isinstance(self.oauth, OAuthSettings) and self.oauth.client_secret:
            yield self.oauth.client_secret

    def is_offered(self, tool: str) -> bool:
        """Tell whether the tool may be used."""
        return tool not in self.deny and (not self.tools or tool in self.tools)


def read_servers(table: Mapping[str, Any]) -> dict[str, ServerSettings]:
    """Return the servers of the section `[mcp]`, in its order; those that are not enabled too.

    Raises:
        ServerSettingsError: Something in it is wrong.
    """
    unknown = [key for key in table if key != "servers"]
    if unknown:
        raise ServerSettingsError(f"mcp.{unknown[0]} is not a setting: servers stand in [mcp.servers.NAME].")
    servers = table.get("servers", {})
    if not isinstance(servers, Mapping):
        raise ServerSettingsError("mcp.servers must be a table: write [mcp.servers.NAME] with a command or a url.")
    return {str(name): _read(str(name), one) for name, one in servers.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def expanded(values: Mapping[str, str], environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the values with each `${VAR}` replaced by what the environment has for it.

    Raises:
        ServerSettingsError: A variable is not set.
    """
    variables = os.environ if environment is None else environment

    def value_of(found: re.Match[str]) -> str:
        if found[1] not in variables:
            raise ServerSettingsError(f"its settings name the environment variable {found[1]}, which is not set")
        return variables[found[1]]

    return {name: _VARIABLE.sub(value_of, value) for name, value in values.items()}


def _read(name: str, table: object) -> ServerSettings:
    where = f"mcp.servers.{name}"
    if not _NAME.fullmatch(name):
        raise ServerSettingsError(f"{where}: a server's name has up to 32 letters, digits, - and _, no other signs.")
    try:
        settings = msgspec.convert(table, ServerSettings, strict=False)
    except msgspec.ValidationError as error:
        raise ServerSettingsError(f"{where}: {error}. See docs/mcp.md for what may stand there.") from error
    if problem := _problem(settings):
        raise ServerSettingsError(f"{where} {problem}")
    return settings


def _problem(settings: ServerSettings) -> str | None:
    if bool(settings.command) == bool(settings.url):
        return "needs either a command (a program to start) or a url (a server to reach)."
    if settings.url and not settings.url.startswith(("http://", "https://")):
        return "has a url that begins neither with http:// nor with https://."
    if settings.url and (settings.args or settings.env or settings.cwd):
        return "has a url: args, env and cwd are for a command. A url takes headers."
    if settings.command and (settings.headers or settings.oauth):
        return "has a command: headers and oauth are for a url. A command takes env."
    if settings.start_seconds <= 0 or settings.timeout_seconds <= 0:
        return "has a time limit that is not above 0."
    return None
