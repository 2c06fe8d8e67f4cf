"""Where `hark serve` listens and who may talk to it: the settings, with the command line's words over them."""

import argparse
import os
import socket
from dataclasses import dataclass

from msgspec import structs

from hark.app.settings import SettingsError
from hark.surfaces.web.guard.access import is_loopback
from hark.surfaces.web.settings import ServeSettings


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
