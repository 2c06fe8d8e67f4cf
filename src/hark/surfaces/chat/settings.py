"""The settings of `[surfaces.NAME]`, and the `PLATFORM` that each platform declares for its setup."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct

from hark.protocol.chat import Author, ChatSurface
from hark.protocol.hooks import Hook

# Each is a package next to this one: its module `platform` has a PLATFORM, its module `surface` a `make_surface`.
PLATFORMS = ("telegram", "discord", "slack", "matrix", "webhook")


class ChatSettings(Struct, frozen=True, omit_defaults=True):
    """Settings of a chat surface.

    `allow`: ids of users who may write, "*" for everyone. `receipts`: how a message's status is shown. `listen`: in
    groups, read only mentions of the bot or all messages. `stop_words`: whether the stop words of `[delivery]` apply.
    """

    token_env: str = ""
    token: str = ""
    api_base: str = ""
    allow: tuple[str, ...] = ()
    receipts: Literal["reactions", "replies", "off"] = "reactions"
    listen: Literal["mentions", "all"] = "mentions"
    per_minute: int = 30
    streams: bool = True
    stop_words: bool = True


S = TypeVar("S", bound=ChatSettings)


def resolve_secret(value: str, variable: str) -> str:
    """Return a secret from the settings, otherwise from the environment variable, or "" if neither is set."""
    return value or (os.environ.get(variable, "") if variable else "")


class HookRegistrar(Protocol):
    """Registers a surface's HTTP hooks with the web server."""

    def __call__(self, *hooks: Hook) -> None:
        """Register hooks, replacing the surface's earlier ones. Raises ValueError if a path can't be used."""
        ...


@dataclass(frozen=True, slots=True)
class PlatformServices:
    """Services that a surface may use. `home` is the directory for its files; `is_stop(text)` detects stop requests."""

    home: Path
    is_allowed: Callable[[Author], bool]
    is_stop: Callable[[str], bool]
    add_hooks: HookRegistrar


@dataclass(frozen=True, slots=True)
class ChatPlatform(Generic[S]):
    """A chat platform's declaration. Its library is imported only when a surface is created or run.

    `required_secrets`: the settings that need a value, or a variable in NAME_env. `find_problems`: returns other
    errors in the settings. `checks_senders`: the surface itself admits senders and limits their rate.
    """

    name: str
    settings: type[S]
    required_secrets: Callable[[S], Sequence[str]] = lambda _: ("token",)
    find_problems: Callable[[S], Iterable[str]] = lambda _: ()
    checks_senders: bool = False

    def parse_settings(self, table: Mapping[str, Any]) -> S:
        """Return the settings from a table of config.toml. Raises msgspec.ValidationError if they are invalid."""
        return msgspec.convert(dict(table), self.settings, strict=False)

    def create_surface(self, settings: S, services: PlatformServices) -> ChatSurface:
        """Return a new surface of this platform.

        Raises:
            ChatError, ValueError: The settings can't be used. The text says why.
        """
        return import_module(f"hark.surfaces.{self.name}.surface").make_surface(settings, services)


def load_platform(name: str) -> ChatPlatform[ChatSettings]:
    """Return the declaration of a platform named in PLATFORMS."""
    return import_module(f"hark.surfaces.{name}.platform").PLATFORM
