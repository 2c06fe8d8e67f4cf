"""Whether settings can be used: what `hark serve` would refuse, what may not have been meant, and where it listens."""

import argparse
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec
from msgspec import Struct, structs

from hark.app.services import servers_of
from hark.app.settings import SettingsError
from hark.app.settings.routes import problem_of
from hark.app.settings.types import Settings
from hark.protocol.rules import ApprovalMode
from hark.surfaces.chat.settings import PLATFORMS, load_platform, secret
from hark.surfaces.web.guard.access import is_loopback
from hark.surfaces.web.settings import ServeSettings
from hark.voice.settings import complaint

STOP_WORDS = "stop_words"
TYPED = ("terminal", "page", "api", "acp")  # surfaces of people that are always there
ELSEWHERE = {"web": "the page and the API are set up in [serve]"}
SHORT_TOKEN = 16
STORES = ("sqlite", "memory")
SURFACES = ("terminal", "api", "python", "oneshot", "acp", "telegram", "discord", "slack", "matrix", "webhook")
_NO_OPTIONS = argparse.Namespace(host=None, port=None, token=None)


class Checked(Struct, frozen=True):
    """Why the settings can't be used, and what is worth a second look."""

    errors: tuple[str, ...]
    warnings: tuple[str, ...]


def check(settings: Settings, options: argparse.Namespace = _NO_OPTIONS) -> Checked:
    """Return all that is wrong, not only the first of it; `options` are what the command line says of serving."""
    return Checked(tuple(_errors(settings, options)), tuple(_warnings(settings)))


def require(settings: Settings, options: argparse.Namespace) -> None:
    """Return if the gateway can use the settings.

    Raises:
        SettingsError: It can't; the text has all that is wrong.
    """
    if errors := check(settings, options).errors:
        raise SettingsError("\n".join(errors))


def _errors(settings: Settings, options: argparse.Namespace) -> Iterator[str]:
    yield from (problem for route in settings.routes if (problem := problem_of(route)))
    if settings.store.url not in STORES:
        yield f"store.url is {settings.store.url!r}; it must be one of {', '.join(STORES)}."
    try:
        servers_of(settings)
    except SettingsError as error:
        yield str(error)
    try:
        choose(settings.serve, options)
    except SettingsError as error:
        yield str(error)
    yield from surface_errors(settings.surfaces)


def _warnings(settings: Settings) -> Iterator[str]:
    names = [route.name for route in settings.routes]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"Two routes are named {name!r}: nobody can tell them apart, and they share their health."
    if settings.approvals.mode is ApprovalMode.ALL:
        yield 'approvals.mode is "all": whatever a model wants to run is run, and nobody is asked.'
    for pattern in settings.approvals.allow:
        if pattern in ("*", "shell", "shell:*"):
            yield f"approvals.allow has {pattern!r}: it allows every command that is not on the hard list."
    for surface in settings.delivery.surfaces:
        if surface not in SURFACES:
            yield f"delivery.{surface} is taken as a surface's delivery, and there is no surface of that name."
    if 0 < len(settings.serve.token) < SHORT_TOKEN:
        yield f"serve.token has {len(settings.serve.token)} signs: make it long, as with openssl rand -hex 24."
    if wrong := complaint(settings.voice):
        yield wrong
    yield from surface_warnings(settings.surfaces)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The settings in force, and the token, which is in none of them that is shown."""

    settings: ServeSettings
    token: str


def choose(settings: ServeSettings, options: argparse.Namespace) -> Chosen:
    """Return the settings with what the command line says over them.

    Raises:
        SettingsError: Everybody could come in, or there is no such port.
    """
    if options.host is not None:
        settings = structs.replace(settings, host=options.host)
    if options.port is not None:
        if not 0 <= options.port <= 65535:
            raise SettingsError(f"There is no port {options.port}; it must be from 0 to 65535.")
        settings = structs.replace(settings, port=options.port)
    token = _token(settings, options.token)
    if not is_loopback(settings.host) and not token:
        raise SettingsError(
            f"On {settings.host or 'every address'} others could use this agent: it needs a token. Give one with "
            "--token, or with token_env or token in [serve]; or listen on 127.0.0.1."
        )
    return Chosen(settings, token)


def _token(settings: ServeSettings, given: str | None) -> str:
    if given is not None:
        return given
    if settings.token or not settings.token_env:
        return settings.token
    token = os.environ.get(settings.token_env, "")
    if not token:
        raise SettingsError(f"[serve] token_env says that {settings.token_env} has the token, but it is empty.")
    return token


def address_of(listener: socket.socket) -> str:
    """Return where a socket listens, as a browser takes it."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


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
