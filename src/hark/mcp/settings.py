"""The types of the settings in `[mcp]` and `[mcp.servers.NAME]`."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from hark.text.redaction import find_secrets_in_url, is_secret_name

DEFAULT_WAIT_SECONDS = 10.0
_Seconds = Annotated[float, Meta(ge=0)]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class ServerSettingsError(Exception):
    """The settings of a server are invalid. The text says which server, why, and how to fix them."""


class StartMode(StrEnum):
    """When a server is started. LAZY: by its first call, or at the start of Hark if its tools aren't cached yet."""

    LAZY = "lazy"
    EAGER = "eager"


class OAuthSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The OAuth login to a remote server. Without a `client_id`, Hark registers itself with the server.

    `redirect_port` is the local port that the browser is redirected to; 0 picks a free port.
    """

    client_id: str = ""
    client_secret: str = ""
    scope: str = ""
    redirect_port: int = 0


class ServerSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One server: a `command` to start, or a `url` to reach. `env` and `headers` may contain `${VAR}`.

    If `tools` isn't empty, only those tools are offered; tools in `deny` never are. `start_seconds` limits the time
    to the first response, `timeout_seconds` the duration of a call, `wait_seconds` the time that a turn waits for the
    server's tools while the server is starting. The default of `wait_seconds` is `wait_seconds` in `[mcp]`.
    """

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict[str, str])
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    oauth: bool | OAuthSettings = False
    enabled: bool = True
    start: StartMode = StartMode.LAZY
    start_seconds: float = 30.0
    timeout_seconds: float = 600.0
    wait_seconds: _Seconds = DEFAULT_WAIT_SECONDS
    tools: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    @property
    def login(self) -> OAuthSettings | None:
        """The OAuth settings, or None if the server needs no login."""
        if isinstance(self.oauth, OAuthSettings):
            return self.oauth
        return OAuthSettings() if self.oauth else None

    @property
    def fingerprint(self) -> str:
        """A hash that changes with any setting that could affect the server's tools. The hash reveals no settings."""
        relevant = msgspec.structs.replace(
            self,
            enabled=True,
            start=StartMode.LAZY,
            start_seconds=30.0,
            timeout_seconds=600.0,
            wait_seconds=DEFAULT_WAIT_SECONDS,
        )
        return hashlib.sha256(msgspec.json.encode(relevant, order="sorted")).hexdigest()[:32]

    def secrets(self) -> Iterator[str]:
        """Yield the secrets in the settings: passwords and keys in variables, headers and the URL."""
        for name, value in (*self.env.items(), *self.headers.items()):
            try:
                expanded_value = expand_variables({name: value})[name]
            except ServerSettingsError:
                continue  # reported when the server starts
            if is_secret_name(name) or expanded_value != value or name in self.headers:
                yield expanded_value
                yield expanded_value.rpartition(" ")[2]  # Bearer SECRET
        yield from find_secrets_in_url(self.url)
        if isinstance(self.oauth, OAuthSettings) and self.oauth.client_secret:
            yield self.oauth.client_secret

    def is_offered(self, tool: str) -> bool:
        """Return whether the settings allow the tool."""
        return tool not in self.deny and (not self.tools or tool in self.tools)


def read_servers(table: Mapping[str, Any]) -> dict[str, ServerSettings]:
    """Return all servers in the section `[mcp]`, in order, including disabled ones.

    Raises:
        ServerSettingsError: A setting is invalid.
    """
    unknown = [key for key in table if key not in ("servers", "wait_seconds")]
    if unknown:
        raise ServerSettingsError(f"mcp.{unknown[0]} is not a setting. Put each server in [mcp.servers.NAME].")
    servers = table.get("servers", {})
    if not isinstance(servers, Mapping):
        raise ServerSettingsError("mcp.servers must be a table. Write [mcp.servers.NAME] with a command or a url.")
    try:
        wait_seconds = msgspec.convert(table.get("wait_seconds", DEFAULT_WAIT_SECONDS), _Seconds, strict=False)
    except msgspec.ValidationError as error:
        raise ServerSettingsError(f"mcp.wait_seconds: {error}. Set the number of seconds; 0 to never wait.") from error
    return {str(name): _read_server(str(name), server_table, wait_seconds) for name, server_table in servers.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def expand_variables(values: Mapping[str, str], environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the values with each `${VAR}` replaced by the environment variable.

    Raises:
        ServerSettingsError: A variable is not set.
    """
    variables = os.environ if environment is None else environment

    def value_of(match: re.Match[str]) -> str:
        if match[1] not in variables:
            raise ServerSettingsError(f"the settings use the environment variable {match[1]}, which is not set")
        return variables[match[1]]

    return {name: _VARIABLE.sub(value_of, value) for name, value in values.items()}


def _read_server(name: str, table: object, wait_seconds: float) -> ServerSettings:
    path = f"mcp.servers.{name}"
    if not _NAME.fullmatch(name):
        raise ServerSettingsError(f"{path}: a server's name may have up to 32 letters, digits, - and _.")
    try:
        settings = msgspec.convert(table, ServerSettings, strict=False)
    except msgspec.ValidationError as error:
        raise ServerSettingsError(f"{path}: {error}. See docs/mcp.md for the valid settings.") from error
    if problem := _find_problem(settings):
        raise ServerSettingsError(f"{path} {problem}")
    has_own_wait = isinstance(table, Mapping) and "wait_seconds" in table
    return settings if has_own_wait else msgspec.structs.replace(settings, wait_seconds=wait_seconds)


def _find_problem(settings: ServerSettings) -> str | None:
    if bool(settings.command) == bool(settings.url):
        return "needs either a command (a program to start) or a url (a server to reach)."
    if settings.url and not settings.url.startswith(("http://", "https://")):
        return "has a url that doesn't start with http:// or https://."
    if settings.url and (settings.args or settings.env or settings.cwd):
        return "has a url, so args, env and cwd don't apply. Use headers instead."
    if settings.command and (settings.headers or settings.oauth):
        return "has a command, so headers and oauth don't apply. Use env instead."
    if settings.start_seconds <= 0 or settings.timeout_seconds <= 0:
        return "has a time limit that isn't greater than 0."
    return None
