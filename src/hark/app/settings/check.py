"""Checks the settings for errors that prevent `hark serve` and for warnings, and resolves its listening address."""

import argparse
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec
from msgspec import Struct, structs

from hark.app.services import read_mcp_servers
from hark.app.settings import SettingsError
from hark.app.settings.routes import route_problem
from hark.app.settings.types import Settings
from hark.protocol.rules import ApprovalMode
from hark.surfaces.chat.settings import PLATFORMS, load_platform, resolve_secret
from hark.surfaces.web.guard.access import is_loopback
from hark.surfaces.web.settings import ServeSettings
from hark.voice.settings import find_settings_problem

STOP_WORDS = "stop_words"
USER_SURFACES = ("terminal", "page", "api", "acp")  # surfaces that need no setup
MOVED_SURFACES = {"web": "configure the page and the API in [serve]"}
MIN_TOKEN_CHARACTERS = 16
STORES = ("sqlite", "memory")
SURFACES = ("terminal", "api", "python", "oneshot", "acp", "telegram", "discord", "slack", "matrix", "webhook")
_NO_OPTIONS = argparse.Namespace(host=None, port=None, token=None)


class SettingsProblems(Struct, frozen=True):
    """Errors that make the settings unusable, and warnings."""

    errors: tuple[str, ...]
    warnings: tuple[str, ...]


def check_settings(settings: Settings, options: argparse.Namespace = _NO_OPTIONS) -> SettingsProblems:
    """Return all errors and warnings. `options` are the command-line options of `hark serve`."""
    return SettingsProblems(tuple(_find_errors(settings, options)), tuple(_find_warnings(settings)))


def require_valid(settings: Settings, options: argparse.Namespace) -> None:
    """Check that the gateway can use the settings.

    Raises:
        SettingsError: The settings have errors. The message lists all of them.
    """
    if errors := check_settings(settings, options).errors:
        raise SettingsError("\n".join(errors))


def _find_errors(settings: Settings, options: argparse.Namespace) -> Iterator[str]:
    yield from (problem for route in settings.routes if (problem := route_problem(route)))
    if settings.store.url not in STORES:
        yield f"store.url is {settings.store.url!r}; it must be one of {', '.join(STORES)}."
    try:
        read_mcp_servers(settings)
    except SettingsError as error:
        yield str(error)
    try:
        resolve_serve_settings(settings.serve, options)
    except SettingsError as error:
        yield str(error)
    yield from surface_errors(settings.surfaces)


def _find_warnings(settings: Settings) -> Iterator[str]:
    names = [route.name for route in settings.routes]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"Two routes are named {name!r}. Route names must be unique."
    if settings.approvals.mode is ApprovalMode.ALL:
        yield 'approvals.mode is "all": everything that a model requests runs without asking you.'
    for pattern in settings.approvals.allow:
        if pattern in ("*", "shell", "shell:*"):
            yield f"approvals.allow has {pattern!r}, which allows any command not on the hard list (docs/approvals.md)."
    for surface in settings.delivery.surfaces:
        if surface not in SURFACES:
            yield f"delivery.{surface} sets the delivery of a surface, but there is no surface named {surface!r}."
    if 0 < len(settings.serve.token) < MIN_TOKEN_CHARACTERS:
        count = len(settings.serve.token)
        yield f"serve.token has {count} characters. Use a longer one, for example from: openssl rand -hex 24"
    if problem := find_settings_problem(settings.voice):
        yield problem
    yield from surface_warnings(settings.surfaces)


@dataclass(frozen=True, slots=True)
class ResolvedServeSettings:
    """The effective `[serve]` settings, with the token kept separate so that it is never printed."""

    settings: ServeSettings
    token: str


def resolve_serve_settings(settings: ServeSettings, options: argparse.Namespace) -> ResolvedServeSettings:
    """Return the `[serve]` settings, overridden by the command-line options.

    Raises:
        SettingsError: The server would be open to everyone, or the port is invalid.
    """
    if options.host is not None:
        settings = structs.replace(settings, host=options.host)
    if options.port is not None:
        if not 0 <= options.port <= 65535:
            raise SettingsError(f"Port {options.port} is invalid; it must be from 0 to 65535.")
        settings = structs.replace(settings, port=options.port)
    token = _resolve_token(settings, options.token)
    if not is_loopback(settings.host) and not token:
        raise SettingsError(
            f"On {settings.host or 'every address'} others could use this agent, so a token is required. Set one with "
            "--token, or with token_env or token in [serve]; or listen on 127.0.0.1."
        )
    return ResolvedServeSettings(settings, token)


def _resolve_token(settings: ServeSettings, option: str | None) -> str:
    if option is not None:
        return option
    if settings.token or not settings.token_env:
        return settings.token
    token = os.environ.get(settings.token_env, "")
    if not token:
        raise SettingsError(f"[serve] token_env is {settings.token_env}, but that variable is empty or not set.")
    return token


def listening_url(listener: socket.socket) -> str:
    """Return the URL that a browser can open to reach a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def surface_errors(surfaces: Mapping[str, Any]) -> Iterator[str]:
    """Yield an error for each `[surfaces]` table that can't be used."""
    for name, table in surfaces.items():
        where = f"surfaces.{name}"
        if name in MOVED_SURFACES:
            continue
        if name not in (*PLATFORMS, *USER_SURFACES):
            yield f"{where}: unknown surface. The surfaces are: {', '.join((*PLATFORMS, *USER_SURFACES))}."
        elif not isinstance(table, dict):
            yield f"{where} must be a table: write [{where}]."
        elif name in USER_SURFACES:
            yield from _user_surface_errors(where, cast("dict[str, Any]", table))
        else:
            yield from (f"{where}: {problem}" for problem in _platform_errors(name, cast("dict[str, Any]", table)))


def surface_warnings(surfaces: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning for each suspicious `[surfaces]` table."""
    for name, table in surfaces.items():
        if name in MOVED_SURFACES:
            yield f"surfaces.{name} is ignored: {MOVED_SURFACES[name]}."
        elif name == "webhook" and isinstance(table, dict) and not cast("dict[str, Any]", table).get("hooks"):
            yield "surfaces.webhook has no hooks, so no program can call it. Add [surfaces.webhook.hooks.NAME]."
        elif isinstance(table, dict) and "*" in cast("dict[str, Any]", table).get("allow", ()):
            yield f'surfaces.{name}.allow has "*": everyone who finds the bot can use this machine through your agent.'


def _user_surface_errors(where: str, table: dict[str, Any]) -> Iterator[str]:
    """Yield the errors in the table of a surface that is not a chat platform."""
    yield from (
        f"{where}.{key} is not a setting; this surface has only stop_words." for key in table if key != STOP_WORDS
    )
    if not isinstance(table.get(STOP_WORDS, True), bool):
        yield f"{where}.{STOP_WORDS} must be true or false."


def _platform_errors(name: str, table: dict[str, Any]) -> Iterator[str]:
    platform = load_platform(name)
    try:
        settings = platform.parse_settings(table)
    except msgspec.ValidationError as error:
        yield f"{error}. See docs/{name}.md."
        return
    unknown = [key for key in table if key not in settings.__struct_fields__]
    yield from (f"{key} is not a setting of this surface. See docs/{name}.md." for key in unknown)
    values = structs.asdict(settings)
    for name in platform.required_secrets(settings):
        variable = values.get(f"{name}_env", "")
        if resolve_secret(values[name], variable):
            continue
        reason = f"{name}_env is {variable}, but that variable is not set" if variable else "neither is set"
        yield f"{name} or {name}_env is required; {reason}."
    yield from platform.find_problems(settings)
